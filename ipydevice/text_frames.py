"""Frames as they are printed: by Python, IPython 7 to 9 in each of its modes, rich and pytest."""

from __future__ import annotations

import re
from dataclasses import dataclass

from ipydevice.text_lines import LONGEST


@dataclass(frozen=True, slots=True)
class PastedFrame:
    """One printed frame."""

    file: str  # as printed; "In [7]" for a cell
    line: int
    function: str
    source: str = ""  # the line that ran, without its indentation
    cell: int | None = None  # n of In [n]
    columns: tuple[int, int] | None = None  # of the running expression in `source`, where carets mark it
    around: tuple[tuple[int, str], ...] = ()  # (line, text) of what is printed of the file, that line included

    @property
    def is_user(self) -> bool:
        """False for what is installed: its path says so."""
        return self.cell is not None or not _INSTALLED.search(self.file.replace("\\", "/"))


@dataclass(frozen=True, slots=True)
class Read:
    """A frame, the number of the line after it, and whether it is printed below the message."""

    frame: PastedFrame
    end: int
    raises: bool = False  # pytest: the place of the raise, printed last


_INSTALLED = re.compile(
    r"(?:^|/)(?:site-packages|dist-packages|lib/python3?[\d.]*|Lib/(?!.*\.ipynb))/|^<|^(?:torch|aten)/|\.\.\./torch/"
    r"|/torch/(?:nn|_tensor|utils|optim|autograd|_dynamo|functional|serialization|cuda|jit|_ops|_refs)|\.pyx$"
    r"|/ipydevice/virtual/"
)

# Python: always quoted.
_PYTHON = re.compile(r'^(?P<indent>\s*)File "(?P<file>.+?)", line (?P<line>\d+)(?:, in (?P<function>.+?))?$')
_MARKS = re.compile(r"^\s*[\^~]+\s*$")

# IPython 8 and 9, with the signature in Context, Verbose and Docs; without in Plain.
_CELL = re.compile(
    r"(?:^|Traceback \(most recent call last\): )\s*(?:Cell|Input) In ?\[(?P<cell>\d+)\](?:, line (?P<line>\d+))?"
    r"(?:,? in (?P<function><cell line: ?\d+>|[^\s(]+).*)?$"
)
_FILE = re.compile(r'^\s*File (?P<file>[^"\s].*?):(?P<line>\d+)(?:,? in (?P<function>[\w.<>]+).*)?$')
# IPython 7, Colab: the line is the arrow's.
_OLD = re.compile(
    r"^(?P<file><ipython-input-(?P<cell>\d+)-\w+>|/tmp/ip(?:ython-input|ykernel_\d+)\S*\.py|[~/.A-Za-z]\S*?\.pyx?|"
    r"<[\w\s-]+>) in (?P<function><cell line: ?\d+>|[\w.<>]+)\(.*$"
)
_ARROW = re.compile(r"^-+> ?(?P<line>\d+) ?(?P<code>.*)$")
_DOCS_ARROW = re.compile(r"^-> +(?P<code>\S.*)$")
_LISTED = re.compile(r"^ {0,9}(?P<line>\d+) (?!frames?$)(?P<code>.*)$|^ {0,9}(?P<empty>\d+)$")

# rich, out of its box: indentation guides are bars.
_RICH = re.compile(
    r"^(?:(?P<file>[~/.<\w][^\s:]*(?:\.\w+|>)):(?P<line>\d+) )?in (?P<function>[\w.<>: ]+?)(?::(?P<cell_line>\d+))?$"
)
_RICH_CODE = re.compile(r"^(?P<arrow>❱)? *(?P<line>\d+)(?: (?P<code>.*))?$")

# pytest: in its short style the source follows, in its long one it stands above, behind a ">".
PYTEST_PLACE = re.compile(r"^(?P<file>[^\s:]+\.py):(?P<line>\d+): ?(?:in (?P<function>[\w.<>]+)|(?P<type>[\w.]+))?$")
_PYTEST_LINE = re.compile(r"^> {3,}(?P<code>\S.*)$")

_OLD_CELL = re.compile(r"<ipython-input-(\d+)-")
# Files that kernels pretend to run: Colab's with n of In [n] where it says so, ipykernel's without.
_OF_A_CELL = re.compile(r"[/\\](?:ipython-input-(?:(?P<cell>\d{1,6})-)?\w+|ipykernel_\d+[/\\]\d+)\.py$")
_REACH = 60  # lines of one printed frame, at most


def read(lines: list[str], number: int) -> Read | None:
    """The frame whose head is line `number`; None where it is something else."""
    line = lines[number]
    if len(line) > LONGEST:
        return None
    if (head := _PYTHON.match(line)) is not None:
        return _python(head, lines, number)
    if (head := _CELL.search(line) or _FILE.match(line)) is not None:
        return _ipython(head, lines, number)
    if (head := _OLD.match(line)) is not None:
        return _ipython(head, lines, number)
    if (head := PYTEST_PLACE.match(line)) is not None:
        return _pytest(head, lines, number)
    if (head := _RICH.match(line)) is not None:
        return _rich(head, lines, number)
    return None


def _python(head: re.Match[str], lines: list[str], number: int) -> Read:
    indent = len(head["indent"])
    shown: list[str] = []
    marks: str | None = None
    end = number + 1
    while end < len(lines) and end < number + _REACH:
        line = lines[end]
        deeper = len(line) - len(line.lstrip()) > indent
        if not line.strip() or not deeper or _PYTHON.match(line) or _CELL.search(line):
            break
        if _MARKS.match(line):
            marks = line if len(shown) == 1 else marks
        else:
            shown.append(line)
        end += 1
    source, columns = _marked(shown, marks)
    old = _OLD_CELL.match(head["file"])
    frame = _frame(head["file"], int(head["line"]), head["function"], source, old and int(old[1]), columns)
    return Read(frame, end)


def _marked(shown: list[str], marks: str | None) -> tuple[str, tuple[int, int] | None]:
    if not shown:
        return "", None
    first = shown[0]
    indent = len(first) - len(first.lstrip())
    if marks is None:
        return first.strip(), None
    start = len(marks) - len(marks.lstrip())
    return first.strip(), (max(0, start - indent), max(0, len(marks.rstrip()) - indent))


def _ipython(head: re.Match[str], lines: list[str], number: int) -> Read:
    groups = head.groupdict()
    cell = int(groups["cell"]) if groups.get("cell") else None
    line = int(groups["line"]) if groups.get("line") else 0
    around: list[tuple[int, str]] = []
    source, end = "", number + 1
    while end < len(lines) and end < number + _REACH:
        text = lines[end]
        if (arrow := _ARROW.match(text)) is not None:
            line, source = int(arrow["line"]), arrow["code"].strip()
            around.append((line, arrow["code"]))
        elif (docs := _DOCS_ARROW.match(text)) is not None:
            source = docs["code"].strip()
        elif (listed := _LISTED.match(text)) is not None:
            around.append((int(listed["line"] or listed["empty"]), listed["code"] or ""))
        elif not source and not around and text.startswith("    ") and text.strip():
            source = text.strip()  # Plain
        elif text.strip() and (source or not text.startswith(" ")) and not _inside_values(text):
            break
        end += 1
    end = min(end, next((at for at in range(number + 1, end) if _is_head(lines[at])), end))
    if source and not around and line:
        around.append((line, source))
    frame = _frame(groups.get("file") or "", line, groups.get("function"), source, cell, None, tuple(around))
    return Read(frame, end)


def _inside_values(text: str) -> bool:
    """Verbose mode prints values, whose lines may begin anywhere."""
    return text.startswith((" ", ")", "]", "}"))


def _is_head(line: str) -> bool:
    return any(pattern.match(line) for pattern in (_PYTHON, _CELL, _FILE, _OLD))


def _rich(head: re.Match[str], lines: list[str], number: int) -> Read | None:
    around: list[tuple[int, str]] = []
    source, line = "", int(head["line"] or head["cell_line"] or 0)
    end = number + 1
    while end < len(lines) and end < number + _REACH:
        text = lines[end]
        code = _RICH_CODE.match(text)
        if code is not None:
            shown = (code["code"] or "").replace("│", " ").rstrip()
            around.append((int(code["line"]), shown))
            if code["arrow"]:
                source = shown.strip()
        elif text.strip() or around:
            break
        end += 1
    if head["file"] is None and not around:
        return None  # "in the end", a sentence
    return Read(_frame(head["file"] or "a cell", line, head["function"], source, None, None, tuple(around)), end)


def _pytest(head: re.Match[str], lines: list[str], number: int) -> Read:
    line, end = int(head["line"]), number + 1
    if head["function"] is not None:
        source = lines[end].strip() if end < len(lines) and lines[end].startswith("    ") else ""
        return Read(_frame(head["file"], line, head["function"], source), end + bool(source))
    source, around = _above(lines, number, line)
    frame = _frame(head["file"], line, "", source, around=around)
    return Read(frame, end, raises=head["type"] is not None)


def _above(lines: list[str], number: int, line: int) -> tuple[str, tuple[tuple[int, str], ...]]:
    """What pytest's long style shows above the place: the function down to the line that ran, behind a ``>``."""
    for at in range(number - 1, max(-1, number - _REACH), -1):
        found = _PYTEST_LINE.match(lines[at])
        if found is None:
            if PYTEST_PLACE.match(lines[at]):
                return "", ()
            continue
        first = at
        while first > 0 and (lines[first - 1].startswith("    ") or not lines[first - 1]) and at - first < _REACH:
            first -= 1
            if lines[first].lstrip().startswith(("def ", "async def ", "class ")) and lines[first].startswith("    "):
                break
        shown = [lines[n][4:] if n < at else lines[n].replace(">", " ", 1)[4:] for n in range(first, at + 1)]
        return found["code"].strip(), tuple(
            (line - at + n, text) for n, text in zip(range(first, at + 1), shown, strict=True)
        )
    return "", ()


def _frame(
    file: str,
    line: int,
    function: str | None,
    source: str,
    cell: int | None = None,
    columns: tuple[int, int] | None = None,
    around: tuple[tuple[int, str], ...] = (),
) -> PastedFrame:
    name = function or "<module>"
    if name.startswith("<cell line"):
        name = "<module>"
    pretended = _OF_A_CELL.search(file) if cell is None else None
    if pretended is not None:
        cell, file = int(pretended["cell"]) if pretended["cell"] else None, "a cell"
    if cell is not None:
        file = f"In [{cell}]"
    return PastedFrame(file, line, name.strip(), source, cell, columns, around or ((line, source),) if line else ())
