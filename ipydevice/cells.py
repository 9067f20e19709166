"""What ran in this session: the cells as the user wrote them, in the order in which they ran.

A `Cell` is one run of a cell.  A frame of the traceback knows only the name of the file
that its code was compiled as; `CellHistory.find` says which run that was.  How a shell
names its cells and how it turns them into Python is handed in at construction, so this
module knows nothing of IPython and can be filled by hand:

>>> history = CellHistory()
>>> cell = history.open(1, "x = 1")
>>> history.close(success=True)
>>> history.python(cell)
('x = 1\\n', 0)
"""

from __future__ import annotations

import ast
import linecache
import re
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

# Cell magics whose body is Python, with the file names under which they compile it.
# %%capture hands its body to run_cell, which names it like a cell of its own.
# IPython/core/magics/execution.py, the same in 7.34 and 9.
PYTHON_MAGICS: dict[str, tuple[str, ...]] = {
    "time": ("<timed exec>", "<timed eval>"),
    "timeit": ("<magic-timeit>",),
    "prun": ("<string>",),
    "capture": (),
}

# Line magics that run the Python behind their options (IPython/core/magics/execution.py).
LINE_MAGICS = {
    "time": r"(?:--no-raise-error\s+)*",
    "timeit": r"(?:-[nrp]\s*\d+\s+|-v\s*\S+\s+|-[tcqo]+\s+)*",
    "prun": r"(?:-[lsTD]\s*\S+\s+|-[rq]+\s+)*",
}

# Lines that show and load ipydevice, and change nothing of the user's.
_OURS = re.compile(r"\s*(?:#.*|%(?:devices|devicefix)\b.*|%(?:re|un)?load_ext\s+ipydevice\b.*)?")
_CELL_MAGIC = re.compile(r"%%(\w+)")
_TERMINAL_NAME = re.compile(r"<ipython-input-(\d+)-\w+>")  # IPython without ipykernel, any version
_KERNEL_NAME = re.compile(r"[\\/]ipykernel_\d+[\\/]")  # <tmp>/ipykernel_<pid>/<hash of the raw text>.py


@dataclass(slots=True, eq=False)
class Cell:
    """One run of a cell. Two runs are never equal, whatever their texts."""

    number: int  # the n of In [n]
    raw: str  # the text as the user wrote it
    cell_id: str | None = None  # the front end's id; None under nbclient and IPython 7
    started: float | None = None  # time.monotonic() at the start
    duration: float | None = None  # seconds; None while it runs, or rebuilt from history
    success: bool | None = None  # None while it runs, or rebuilt from history

    @property
    def is_ours(self) -> bool:
        """Whether it holds nothing but our magics, so that no re-run needs it."""
        return all(_OURS.fullmatch(line) for line in self.raw.splitlines())


@dataclass
class CellHistory:
    """Runs of cells, the oldest first. Re-running a cell adds an entry.

    `transform` makes Python of a cell's text (``shell.transform_cell``); `name_of` gives
    the file name for a raw text, its Python and its number (``shell.compile.get_code_name``).
    """

    cells: list[Cell] = field(default_factory=list)
    transform: Callable[[str], str] | None = None
    name_of: Callable[[str, str, int], str] | None = None
    _open: list[Cell] = field(default_factory=list, repr=False)  # a %%capture inside a cell nests
    _pythons: dict[str, str] = field(default_factory=dict, repr=False)
    _names: dict[tuple[str, int], tuple[str, ...]] = field(default_factory=dict, repr=False)

    @classmethod
    def from_shell(cls, shell: Any) -> CellHistory:
        """Rebuild what ran before anybody listened, from an IPython shell's own record; ids are lost."""
        history = cls(transform=shell.transform_cell, name_of=shell.compile.get_code_name)
        raws = shell.history_manager.input_hist_raw
        history.cells = [Cell(number, raw) for number, raw in enumerate(raws) if number and raw.strip()]
        # A shell records a cell before it runs it and its result afterwards.
        last = shell.last_execution_result
        if history.cells and (last is None or last.execution_count != history.cells[-1].number):
            history._open.append(history.cells[-1])
        return history

    def open(self, number: int, raw: str, cell_id: str | None = None) -> Cell:
        """A cell starts. The body that a magic such as %%capture runs belongs to the cell around it."""
        outer = self.running
        if outer is not None and raw != outer.raw and raw.strip() in (body.strip() for body, _ in self._layers(outer)):
            self._open.append(outer)
            return outer
        cell = Cell(number, raw, cell_id, started=time.monotonic())
        self.cells.append(cell)
        self._open.append(cell)
        return cell

    def close(self, success: bool) -> None:
        """The cell that started last is over."""
        if not self._open:
            return
        cell = self._open.pop()
        if cell in self._open:
            return  # only the body of its magic is over
        cell.success = success
        if cell.started is not None:
            cell.duration = time.monotonic() - cell.started

    def afterwards(self) -> CellHistory:
        """The same history for an error with which the cell that runs now has nothing to do."""
        return replace(self, _open=[])

    @property
    def running(self) -> Cell | None:
        """The cell that is running, the innermost where one runs another."""
        return self._open[-1] if self._open else None

    def find(self, filename: str) -> Cell | None:
        """The cell whose code was compiled under this file name; of equal cells the running one, else the latest."""
        if not self._may_be_cell(filename):
            return None
        text = "".join(linecache.getlines(filename)).strip()
        terminal = _TERMINAL_NAME.fullmatch(filename)
        number = int(terminal[1]) if terminal else None

        # A name costs a hash in pure Python (ipykernel: 0.6 us a character): try the likely cells first.
        def unlikely(cell: Cell) -> tuple[bool, bool]:
            return number not in (None, cell.number), cell.raw.strip() != text

        for cell in sorted(self._newest_first(), key=unlikely):
            # A body that %%capture runs has the number of the next cell since IPython 9.8.
            if filename in self._names_of(cell, cell.number if number is None else number):
                return cell
        return None

    def python(self, cell: Cell) -> tuple[str, int]:
        """The cell's Python as it was compiled, and how many lines of the raw text stand above it.

        Below ``%%time`` and its like the Python is the body, and a line of ``%time`` is the code that it runs.
        A magic of another language gives the call that IPython makes of it.
        """
        body, above = list(self._layers(cell))[-1]
        python = self._python(body)
        return _with_run_code(python, _run_by_lines(python)), above

    def magic_of_line(self, cell: Cell, line: int) -> tuple[str, int] | None:
        """The magic that runs code on this line of the cell's Python, and the column of that code: ("timeit", 4)."""
        found = _run_by_lines(self._python(list(self._layers(cell))[-1][0])).get(line)
        return None if found is None else found[:2]

    def current(self) -> list[Cell]:
        """The latest run of each cell of the notebook, in the order in which they last ran.

        A front end without ids leaves only the text to tell cells apart: an edited cell
        is then another cell, and of equal cells the latest stands for all.
        """
        latest: list[Cell] = []
        ids: set[str] = set()
        raws: set[str] = set()
        for cell in reversed(self.cells):
            if cell.raw in raws if cell.cell_id is None else cell.cell_id in ids:
                continue
            raws.add(cell.raw)
            if cell.cell_id is not None:
                ids.add(cell.cell_id)
            latest.append(cell)
        return latest[::-1]

    def twins(self, cell: Cell) -> list[Cell]:
        """Other cells of the notebook, or other runs where there are no ids, with the same text."""
        return [
            other
            for other in self.cells
            if other is not cell and other.raw == cell.raw and (other.cell_id is None or other.cell_id != cell.cell_id)
        ]

    def _may_be_cell(self, filename: str) -> bool:
        """Cheap: a traceback is mostly frames of libraries."""
        if _TERMINAL_NAME.fullmatch(filename) or _KERNEL_NAME.search(filename):
            return True
        return filename.startswith("<") and any(filename in names for names in PYTHON_MAGICS.values())

    def _newest_first(self) -> Iterator[Cell]:
        running = self.running
        if running is not None:
            yield running
        yield from (cell for cell in reversed(self.cells) if cell is not running)

    def _names_of(self, cell: Cell, number: int) -> tuple[str, ...]:
        """The file names that code of this cell may have, compiled as cell `number`."""
        key = cell.raw, number
        if key not in self._names:
            names: list[str] = []
            for text, _ in self._layers(cell):
                if self.name_of is not None:
                    names.append(self.name_of(text, self._python(text), number))
                names.extend(PYTHON_MAGICS.get(_magic(_check_below(text)) or "", ()))
            self._names[key] = tuple(names)
        return self._names[key]

    def _layers(self, cell: Cell) -> Iterator[tuple[str, int]]:
        """The raw text and, below each magic whose body is Python, that body; with the raw lines above its Python."""
        text, above = cell.raw, 0
        while True:
            # IPython drops empty lines at the top before it compiles, and the frame counts without them.
            blank = len(text) - len(text.lstrip())
            blank = text[:blank].count("\n")
            yield text, above + blank
            text = _check_below(text)
            if _magic(text) not in PYTHON_MAGICS:
                return
            lines = text.splitlines(keepends=True)
            text, above = "".join(lines[blank + 1 :]), above + blank + 1

    def _python(self, raw: str) -> str:
        if raw not in self._pythons:
            self._pythons[raw] = _plain(raw) if self.transform is None else self.transform(raw)
        return self._pythons[raw]


def _run_by_lines(python: str) -> dict[int, tuple[str, int, str]]:
    """By line: the line magic that stands there, alone or behind ``result =``, its column, and the code that it runs.

    The column counts UTF-8 bytes, as all columns of syntax trees do.
    """
    if "run_line_magic" not in python:
        return {}
    try:
        tree = ast.parse(python)
    except (SyntaxError, ValueError, RecursionError):
        return {}
    found: dict[int, tuple[str, int, str]] = {}
    for node in ast.walk(tree):
        match node:
            case ast.Expr(value=ast.Call() as call) | ast.Assign(value=ast.Call() as call) if (
                call.lineno == call.end_lineno
            ):
                name, code = _run_by(call)
                if code and _is_python(code, "exec" if isinstance(node, ast.Expr) else "eval"):
                    found[call.lineno] = name, call.col_offset, code
    return found


def _run_by(call: ast.Call) -> tuple[str, str]:
    """Name and code of a magic's call; "" where it is none that runs code."""
    match call:
        case ast.Call(
            func=ast.Attribute(attr="run_line_magic"),
            args=[ast.Constant(value=str(name)), ast.Constant(value=str(given)), *_],
        ) if name in LINE_MAGICS:
            return name, re.sub(f"^{LINE_MAGICS[name]}", "", given).strip()
    return "", ""


def _with_run_code(python: str, run: dict[int, tuple[str, int, str]]) -> str:
    """The text with each of these calls of magics as the code that it runs."""
    if not run:
        return python
    lines = python.split("\n")
    for line, (_, column, code) in run.items():
        lines[line - 1] = lines[line - 1].encode()[:column].decode() + code
    return "\n".join(lines)


def _is_python(code: str, mode: str) -> bool:
    try:
        ast.parse(code, mode=mode)
    except (SyntaxError, ValueError, RecursionError):
        return False
    return "\n" not in code


def _magic(text: str) -> str | None:
    """The name of the cell magic on the first line, if there is one."""
    match = _CELL_MAGIC.match(text.lstrip())
    return match[1] if match else None


def _check_below(text: str) -> str:
    """How ``%%devicecheck`` above another cell magic runs: as the first line of what that one runs."""
    lines = text.lstrip().splitlines(keepends=True)
    if _magic(text) != "devicecheck" or len(lines) < 2 or not lines[1].startswith("%%"):
        return text
    above = text[: len(text) - len(text.lstrip())]
    return above + "".join([lines[1], lines[0][1:], *lines[2:]])


def _plain(raw: str) -> str:
    """What IPython makes of a cell without magics."""
    text = raw[raw[: len(raw) - len(raw.lstrip())].rfind("\n") + 1 :]
    return text if text.endswith("\n") else text + "\n"
