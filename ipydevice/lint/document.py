"""One file to be read: a program, or a notebook's code cells as one program.

The cells of a notebook are joined in the order of the file, so that an optimizer in one cell and
the model's move in the next are seen together.  What is no Python (magics, shell lines, cells of
other languages) is held open by a placeholder, so that each line keeps its number.
"""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from ipydevice.cells import PYTHON_MAGICS
from ipydevice.diagnose.source import Source
from ipydevice.input_error import InputError
from ipydevice.notebook_files import FileCell, NotebookFile, is_notebook, transform

# IPython takes these without their % too (%automagic); looked for only in cells that are no plain Python.
_AUTOMAGIC = r"(?:pip|conda|mamba|micromamba|uv|cd|ls|ll|mkdir|rmdir|cat|cp|mv|rm|man|less|more)\s+[\w./~$\"'-]"
_MAGIC = re.compile(rf"^(?P<indent>\s*)(?:[%!?]|\w+\s*=\s*[%!](?!=)|[^#\s].*\?\s*$|{_AUTOMAGIC})")
_HELD = "pass  # ipydevice: line "
_NOQA = re.compile(r"#\s*noqa(?::\s*(?P<ids>[A-Z]+\d+(?:[,\s]+[A-Z]+\d+)*))?", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Spot:
    """A place as the person knows it."""

    line: int  # 1-based, in the cell or the file
    cell: int | None = None  # 1-based among all cells of the notebook
    number: int | None = None  # n of In [n]


@dataclass(frozen=True, slots=True)
class Broken:
    """A cell or a file that does not parse."""

    spot: Spot
    column: int  # 1-based, in characters
    message: str


@dataclass(slots=True)
class _Part:
    cell: FileCell
    start: int  # the line of the joined text above the cell's first
    held: dict[int, str]  # lines of the cell that are no Python


class Document:
    """The text of one file with its tree, an empty one where it is `broken`.

    Raises InputError where the file is no notebook, or too deep for the parser.
    """

    def __init__(self, text: str, name: str) -> None:
        self.name = name
        self.book = NotebookFile.read(text, name) if is_notebook(text, name) else None
        self.parts: list[_Part] = []
        self.skipped: list[str] = []
        self.broken: list[Broken] = []
        self.text = text if self.book is None else self._joined(self.book)
        if self.book is None:
            try:
                _parse(text)
            except SyntaxError as error:
                self.broken.append(_broken(error))
            except (ValueError, RecursionError) as error:
                raise InputError(f"{name}: no Python that this version can read ({error})") from None
        self.source = Source("" if self.book is None and self.broken else self.text, file=name)

    def _joined(self, book: NotebookFile) -> str:
        if book.language not in ("python", "ipython", "python3"):
            self.skipped.append(f"{self.name}: its kernel speaks {book.language}, nothing is checked")
            return ""
        lines: list[str] = []
        for cell in book.cells:
            shown, held = _without_magics(cell.source)
            try:
                _parse("\n".join(shown))
            except SyntaxError as error:
                if _is_for_ipython(cell.source):
                    self.skipped.append(f"{self.name}: cell {cell.position + 1} is no plain Python, it is skipped")
                else:
                    self.broken.append(_broken(error, cell))
                continue
            except (ValueError, RecursionError) as error:
                raise InputError(f"{self.name}: cell {cell.position + 1} cannot be read ({error})") from None
            lines.append(_mark(cell.position))
            self.parts.append(_Part(cell, len(lines), held))
            lines += shown
        return "\n".join(lines) + "\n" if lines else ""

    def spot(self, line: int) -> Spot:
        """Where a line of the text is in the file."""
        for part in reversed(self.parts):
            if line > part.start:
                return Spot(line - part.start, part.cell.position + 1, part.cell.number)
        return Spot(line)

    def sources(self, text: str) -> dict[int, str]:
        """The cells that differ in an edited text, by position."""
        after: dict[int, list[str]] = {}
        here: list[str] = []
        for line in text.splitlines():
            mark = _MARK.fullmatch(line)
            if mark is not None:
                here = after.setdefault(int(mark[1]), [])
            else:
                here.append(line)
        changed = {}
        for part in self.parts:
            lines = [_given_back(line, part.held) for line in after.get(part.cell.position, [])]
            # The joined text ends each cell with a newline that the cell need not have.
            new = "\n".join(lines)
            if new.rstrip("\n") != part.cell.source.rstrip("\n"):
                changed[part.cell.position] = new + "\n" * (part.cell.source.endswith("\n") and not new.endswith("\n"))
        return changed

    @cached_property
    def silenced(self) -> dict[int, frozenset[str] | None]:
        """Lines with ``# noqa``: the ids named there, None for all."""
        found: dict[int, frozenset[str] | None] = {}
        for number, line in enumerate(self.source.lines, 1):
            if "noqa" not in line.lower():
                continue
            said = _NOQA.search(line)
            if said is not None:
                found[number] = frozenset(re.findall(r"[A-Z]+\d+", said["ids"].upper())) if said["ids"] else None
        return found

    def is_silenced(self, rule: str, lines: range) -> bool:
        """Whether one of these lines says that the rule is not to speak."""
        for line in lines:
            ids = self.silenced.get(line, frozenset())
            if ids is None or rule in ids:
                return True
        return False


def _parse(text: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of invalid escapes, which are not this linter's business
        ast.parse(text)


def _broken(error: SyntaxError, cell: FileCell | None = None) -> Broken:
    place = (cell.position + 1, cell.number) if cell is not None else ()
    return Broken(Spot(error.lineno or 1, *place), max(error.offset or 1, 1), error.msg)


def _is_for_ipython(source: str) -> bool:
    """Whether IPython makes Python of a cell: `/f x`, `,f a b`."""
    make = transform()
    if make is None:
        return False
    try:
        _parse(make(source))
    except (SyntaxError, ValueError, RecursionError):
        return False
    return True


_MARK = re.compile(r"# %% ipydevice: cell (\d+)")


def _mark(position: int) -> str:
    return f"# %% ipydevice: cell {position}"


def _without_magics(source: str) -> tuple[list[str], dict[int, str]]:
    """The lines of a cell with placeholders for what is no Python, and what they stand for."""
    lines = source.splitlines()
    held: dict[int, str] = {}
    first = next((n for n, line in enumerate(lines) if line.strip()), None)
    if first is not None and lines[first].startswith("%%"):
        words = lines[first][2:].split()
        foreign = not words or words[0] not in {*PYTHON_MAGICS, "devicecheck"}
        for number in range(len(lines) if foreign else first + 1):
            if number >= first:
                held[number] = lines[number]
    indents: dict[int, str] = {}
    plain = _is_python(lines)
    for number, begins in _statements(lines):
        indents[number] = _indent(lines[begins])
        if number not in held and not plain and _MAGIC.match(lines[begins]):
            held[number] = lines[number]
    shown = [
        f"{indents[number]}{_HELD}{number}" if number in held else line.rstrip("\r")
        for number, line in enumerate(lines)
    ]
    return shown, held


def _statements(lines: list[str]) -> Iterator[tuple[int, int]]:
    """Each line's number, and that of the line it belongs to: a shell line that ends in a backslash goes on."""
    begins = 0
    going_on = False
    for number, line in enumerate(lines):
        begins = begins if going_on else number
        yield number, begins
        going_on = lines[begins].lstrip().startswith(("!", "%")) and line.rstrip().endswith("\\")


def _is_python(lines: list[str]) -> bool:
    try:
        _parse("\n".join(lines))
    except (SyntaxError, ValueError, RecursionError):
        return False
    return True


def _indent(line: str) -> str:
    return line[: len(line) - len(line.lstrip())]


def _given_back(line: str, held: dict[int, str]) -> str:
    placeholder = line.strip()
    if placeholder.startswith(_HELD):
        return held.get(int(placeholder.removeprefix(_HELD)), line)
    return line
