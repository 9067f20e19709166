"""A live traceback as frames: the user's cells and files with their sources, libraries without.

Only the user's texts are parsed whole.  Of a library's frame nothing but the running
expression is cut out by its columns (``co_positions``, PEP 657) and parsed: torch's own
files take seconds.
"""

from __future__ import annotations

import ast
import linecache
import os
import site
import sys
import sysconfig
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from itertools import islice
from types import CodeType, FrameType, FunctionType, ModuleType, TracebackType
from typing import Any, Literal

from ipydevice import placement
from ipydevice.cells import PYTHON_MAGICS, Cell, CellHistory
from ipydevice.diagnose import locate
from ipydevice.diagnose.evaluate import Scope, is_exactly, is_of
from ipydevice.diagnose.source import Source, of_cell

OWN_FOLDER = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
GENERATED = ("<eval_with_key>",)  # code that torch.fx writes; linecache has its text
COMPREHENSIONS = ("<listcomp>", "<genexpr>", "<setcomp>", "<dictcomp>")  # no frames of their own since 3.12

Span = tuple[int, int, int, int]  # line, end line, column, end column; columns count UTF-8 bytes


@dataclass(eq=False)
class Frame:
    """One frame of a traceback."""

    frame: FrameType
    line: int  # in the text as compiled
    span: Span | None  # of the running expression; None under PYTHONNODEBUGRANGES
    kind: Literal["cell", "file", "library"]
    file: str
    function: str
    source: Source | None = field(default=None, repr=False)  # None for a library's

    @property
    def is_user(self) -> bool:
        return self.kind != "library"

    @cached_property
    def scope(self) -> Scope:
        return Scope.of_frame(self.frame)

    @cached_property
    def node(self) -> ast.AST | None:
        """The expression or statement that was running."""
        if self.source is not None:
            return locate.running(self.source, self.line, self.span)
        return locate.cut_out(self.file, self.span, self.frame.f_globals)


class Sources:
    """Sources by cell and file, so that one text is parsed once in one diagnosis."""

    def __init__(self, history: CellHistory) -> None:
        self.history = history
        self._cells: dict[Cell, Source] = {}
        self._files: dict[str, Source] = {}

    def all_cells(self) -> list[Source]:
        """Every run of a cell so far, the oldest first."""
        return [self.of_cell(cell) for cell in self.history.cells]

    def of_cell(self, cell: Cell) -> Source:
        if cell not in self._cells:
            self._cells[cell] = of_cell(self.history, cell)
        return self._cells[cell]

    def of_code_file(self, file: str) -> Source | None:
        """The source for a frame's file name: a cell's, or a file's of the user's."""
        cell = self.history.find(file)
        if cell is not None:
            return self.of_cell(cell)
        return self.of_file(file)

    def of_file(self, file: str) -> Source | None:
        if file not in self._files:
            text = "".join(linecache.getlines(file))
            if not text:
                return None
            self._files[file] = Source(text, file=file)
        return self._files[file]

    def files_of(self, names: Mapping[str, Any]) -> Iterator[Source]:
        """The user's own files whose modules, functions or classes are among the names, each once."""
        seen: set[str] = set()
        for live in list(names.values()):
            module = live if is_exactly(live, ModuleType) else sys.modules.get(_home(live))
            file = module.__dict__.get("__file__") if is_exactly(module, ModuleType) else None
            if type(file) is str and file not in seen and not is_library(file):
                seen.add(file)
                source = self.of_file(file)
                if source is not None:
                    yield source


def _home(live: Any) -> str:
    """The name of the Python module that a function or class was made in."""
    if is_exactly(live, FunctionType):
        return live.__module__ if type(live.__module__) is str else ""
    return placement.module_name(live) if is_of(live, type) else ""


def collect(tb: TracebackType | None, sources: Sources, limit: int = 200) -> list[Frame]:
    """The frames of a traceback, the outermost first, without our own and IPython's."""
    frames: list[Frame] = []
    for trace, line in islice(_walk(tb), limit):
        frame = _frame(trace.tb_frame, line, trace.tb_lasti, sources)
        if frame is None:
            continue
        around = _line_magic_around(frame, frames, sources)
        if around is not None:
            at, column = around
            frames[at:] = [_on_the_line_of(frames[at], column, frame)]
        else:
            frames.append(frame)
    first_user = next((i for i, frame in enumerate(frames) if frame.is_user), 0)
    return frames[first_user:]


def _line_magic_around(frame: Frame, above: list[Frame], sources: Sources) -> tuple[int, int] | None:
    """The index of the frame whose line is a magic, such as ``%timeit f(x)``, that runs the code of this frame.

    And the column at which that line's Python has the code.
    """
    if not frame.file.startswith("<"):
        return None
    at = next((at for at in range(len(above) - 1, -1, -1) if above[at].is_user), None)
    if at is None or above[at].source is None or above[at].kind != "cell":
        return None
    cell = above[at].source.cell  # type: ignore[union-attr]
    found = sources.history.magic_of_line(cell, above[at].line) if cell is not None else None
    return (at, found[1]) if found is not None and frame.file in PYTHON_MAGICS[found[0]] else None


def _on_the_line_of(outer: Frame, column: int, frame: Frame) -> Frame:
    """The frame of a line magic's code as one of the cell's, where the cell's Python shows that code."""
    down, span = outer.line - 1, frame.span
    if span is not None:
        span = span[0] + down, span[1] + down, span[2] + column, span[3] + column
    return replace(
        frame, line=frame.line + down, span=span, kind=outer.kind, file=outer.file, function=outer.function,
        source=outer.source,
    )  # fmt: skip


def _walk(tb: TracebackType | None) -> Iterator[tuple[TracebackType, int]]:
    while tb is not None:
        yield tb, tb.tb_lineno
        tb = tb.tb_next


def _frame(frame: FrameType, line: int, lasti: int, sources: Sources) -> Frame | None:
    code = frame.f_code
    file = code.co_filename
    if file.startswith(OWN_FOLDER):
        return None
    span = _span(code, lasti)
    name = code.co_qualname
    if is_library(file):
        return Frame(frame, line, span, "library", file, name)
    source = sources.of_code_file(file)
    if source is None:  # exec'd text, a dataclass's __init__
        return Frame(frame, line, span, "library", file, name)
    return Frame(frame, line, span, "cell" if source.cell is not None else "file", file, name, source)


def _span(code: CodeType, lasti: int) -> Span | None:
    found = next(islice(code.co_positions(), lasti // 2, None), None)
    if found is None or any(part is None for part in found):
        return None
    line, end_line, column, end_column = found
    assert line is not None
    assert end_line is not None
    assert column is not None
    assert end_column is not None
    return line, end_line, column, end_column


@cache
def _library_folders() -> tuple[str, ...]:
    paths = sysconfig.get_paths()
    folders = {paths[key] for key in ("stdlib", "platstdlib", "purelib", "platlib")}
    folders.update(site.getsitepackages() if hasattr(site, "getsitepackages") else ())
    folders.add(site.getusersitepackages())
    folders.update(folder for folder in sys.path if folder.rstrip("/\\").endswith(("site-packages", "dist-packages")))
    torch = sys.modules.get("torch")  # a source checkout of torch lies outside site-packages
    if torch is not None and getattr(torch, "__file__", None):
        folders.add(os.path.dirname(str(torch.__file__)))
    return tuple(os.path.join(os.path.realpath(folder), "") for folder in folders) + tuple(
        os.path.join(folder, "") for folder in folders
    )


@cache
def is_library(file: str) -> bool:
    """Whether code of this file name is installed or ours, not the user's own."""
    if file.startswith(("<frozen ", OWN_FOLDER, *GENERATED)):
        return True
    return file.startswith(_library_folders())
