"""Frames that were printed, as places in sources: the notebook's cells, files at hand, or the lines printed."""

from __future__ import annotations

import ast
import linecache
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass, replace

from ipydevice.cells import Cell, CellHistory
from ipydevice.diagnose import locate
from ipydevice.diagnose.frames import Sources
from ipydevice.diagnose.source import Source
from ipydevice.text_frames import PastedFrame


@dataclass(slots=True)
class PrintedSite:
    """One printed frame of the user's code."""

    frame: PastedFrame
    source: Source
    statement: ast.AST  # on the printed line
    node: ast.AST | None  # the expression that carets mark
    whole: bool  # the source is all of the cell or file, not just the lines printed
    below: str | None = None  # the function of the frame below, where that is a library's
    below_file: str = ""  # and its file


def sites(frames: Sequence[PastedFrame], history: CellHistory) -> list[PrintedSite]:
    """The user's frames, the outermost first, each with the source that it speaks of."""
    frames = _as_written([frame for frame in frames if not _is_inner(frame)])
    sources = Sources(history)
    found: list[PrintedSite] = []
    for number, frame in enumerate(frames):
        if not frame.is_user:
            continue
        below = frames[number + 1] if number + 1 < len(frames) else None
        site = _site(frame, history, sources)
        if site is not None:
            if below is not None and not below.is_user:
                site.below, site.below_file = below.function.rpartition(".")[2], below.file.replace("\\", "/")
            found.append(site)
    return found


_TIMED = ("<timed exec>", "<timed eval>", "<magic-timeit>")  # files that IPython's magics pretend to run


def _as_written(frames: Sequence[PastedFrame]) -> list[PastedFrame]:
    """The frames without the code that IPython makes of ``%%time`` and its like: at the line that the person wrote.

    What is printed is ``get_ipython().run_cell_magic('time', '', BODY)`` at line 1 of the cell, and a frame of a file
    that nobody has, whose lines count from the body's first (IPython 8 and 9, core/magics/execution.py).
    """
    found: list[PastedFrame] = []
    outer: PastedFrame | None = None  # the call of a magic
    for frame in frames:
        if frame.file not in _TIMED or outer is None:
            found.append(frame)
            outer = frame if frame.cell is not None and _magic_of(frame.source) is not None else outer
            continue
        whole, body = _magic_of(outer.source) or (False, "")
        lines = body.splitlines()
        empty = next(
            (n for n, line in enumerate(lines) if line.strip()), 0
        )  # IPython leaves them out, and does not count
        at = frame.line - 1 + empty
        if 0 <= at < len(lines):
            # A line magic stands on the line of its frame; a cell magic has the first line for itself.
            line = at + 2 if whole else outer.line
            source = lines[at].strip()
            found[found.index(outer)] = replace(outer, line=line, source=source, columns=None, around=((line, source),))
        outer = None
    return found


def _magic_of(source: str) -> tuple[bool, str] | None:
    """(is it a cell's, its body) of ``get_ipython().run_cell_magic(name, line, body)``, as IPython prints it."""
    if ".run_cell_magic(" not in source and ".run_line_magic(" not in source:
        return None
    try:
        call = ast.parse(source, mode="eval").body
    except (SyntaxError, ValueError):
        return None
    match call:
        case ast.Call(func=ast.Attribute(attr="run_cell_magic"), args=[_, _, ast.Constant(value=str() as body)]):
            return True, body
        case ast.Call(func=ast.Attribute(attr="run_line_magic"), args=[_, ast.Constant(value=str() as body)]):
            return False, body
    return None


def _is_inner(frame: PastedFrame) -> bool:
    """Frames that tell nothing: our own virtual GPUs' (real ones raise from C++), and decorators."""
    file = frame.file.replace("\\", "/")
    return "/ipydevice/virtual/" in file or (
        file.endswith("utils/_contextlib.py") and "decorate_context" in frame.function
    )


def _site(frame: PastedFrame, history: CellHistory, sources: Sources) -> PrintedSite | None:
    source, whole = _cell(frame, history, sources), True
    if source is None and frame.cell is None:
        source = _file(frame, sources)
    if source is None:
        source, whole = _fragment(frame, history), False
    if source is None:
        return None
    line = _own_line(source, frame)
    statement = locate.running(source, line, None)
    if statement is None:
        return None
    node = _marked(source, line, frame)
    return PrintedSite(frame, source, statement, node, whole)


def _own_line(source: Source, frame: PastedFrame) -> int:
    """The printed line in the source's own count, which leaves out what stands above a cell's Python."""
    return frame.line - source.shift if _says(source, frame.line, frame) else frame.line


def _says(source: Source, line: int, frame: PastedFrame) -> bool:
    return not frame.source or source.line_text(line - source.shift) == frame.source


def _cell(frame: PastedFrame, history: CellHistory, sources: Sources) -> Source | None:
    """The cell of that number whose line is the printed one, else the latest cell that has it there."""
    cells = [cell for cell in reversed(history.cells) if cell.number == frame.cell]
    if frame.cell is None and not _may_be_cell(frame.file):
        return None
    for cell in (*cells, *reversed(history.cells)):
        source = sources.of_cell(cell)
        for line in (frame.line, frame.line + source.shift):
            if frame.source and source.line_text(line - source.shift) == frame.source:
                return source
    return None


def _may_be_cell(file: str) -> bool:
    return "ipykernel" in file or "ipython-input" in file or file == "a cell"


def _file(frame: PastedFrame, sources: Sources) -> Source | None:
    """A file at hand whose line is the printed one."""
    if not frame.source or not frame.file.endswith(".py"):
        return None
    if linecache.getline(frame.file, frame.line).strip() != frame.source:
        return None
    return sources.of_file(frame.file)


def _fragment(frame: PastedFrame, history: CellHistory) -> Source | None:
    """The lines printed around the frame's own, at their numbers: as many of them as are Python together."""
    around = dict(frame.around)
    if not frame.line or not around.get(frame.line, "").strip():
        return None
    first = last = frame.line
    while first - 1 in around:
        first -= 1
    while last + 1 in around:
        last += 1
    windows = [(a, b) for a in range(first, frame.line + 1) for b in range(last, frame.line - 1, -1)]
    for a, b in sorted(windows, key=lambda window: window[0] - window[1]):
        text = _parseable("\n".join(around[n] for n in range(a, b + 1)), last_line_open=b == frame.line)
        if text is not None:
            padded = _in_function(text, frame, first=a)
            if frame.cell is None:
                return Source(padded, file=frame.file)
            cell = Cell(frame.cell, padded)
            history.cells.append(cell)
            return Sources(history).of_cell(cell)
    return None


def _parseable(text: str, *, last_line_open: bool) -> str | None:
    """The text without its common indentation, completed where it breaks off; None where it is no Python."""
    text = textwrap.dedent(text)
    endings = (
        ("", " pass", ")", "))", ")))", "]", ")]", "):\n    pass")
        if last_line_open
        else ("", "\n" + _deeper(text) + "pass")
    )
    for ending in endings:
        try:
            ast.parse(text + ending)
        except (SyntaxError, ValueError):
            continue
        return text + ending
    return None


def _in_function(text: str, frame: PastedFrame, *, first: int) -> str:
    """The text at its line, below the head of the function that it is of: a `return` alone is no program.

    The head takes the line above, which is not printed; its parameters are not known.
    """
    inside = frame.function.rpartition(".")[2].isidentifier() and first > 1
    if not inside or isinstance(ast.parse(text).body[0], (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return "\n" * (first - 1) + text
    waits = any(isinstance(node, (ast.Await, ast.AsyncFor, ast.AsyncWith)) for node in ast.walk(ast.parse(text)))
    head = f"{'async ' * waits}def {frame.function.rpartition('.')[2]}():"
    return "\n" * (first - 2) + f"{head}\n{textwrap.indent(text, '    ')}"


def _deeper(text: str) -> str:
    last = text.splitlines()[-1] if text else ""
    return last[: len(last) - len(last.lstrip())] + "    "


def _marked(source: Source, line: int, frame: PastedFrame) -> ast.AST | None:
    """The expression under the carets."""
    if frame.columns is None or not 0 < line <= len(source.lines):
        return None
    text = source.lines[line - 1]
    indent = len(text) - len(text.lstrip())
    start, end = (len(text[: indent + column].encode()) for column in frame.columns)
    return locate.running(source, line, (line, line, start, end))
