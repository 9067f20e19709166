"""Stored tracebacks, at the lines where their code stands in the cells as they are by now."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import replace

from ipydevice.cells import Cell, CellHistory
from ipydevice.notebook_files import FileCell, NotebookFile, transform
from ipydevice.text_frames import PastedFrame
from ipydevice.text_traceback import PastedError


def numbers(book: NotebookFile) -> dict[int, int]:
    """A number for each code cell by its position: of its run, or for those that never ran as if they were next."""
    last = max((cell.number or 0 for cell in book.cells), default=0)
    found: dict[int, int] = {}
    for cell in book.cells:
        last += cell.number is None
        found[cell.position] = last if cell.number is None else cell.number
    return found


def as_if_run(book: NotebookFile) -> CellHistory:
    """The cells that have run, in that order, and behind them those below that never ran."""
    given = numbers(book)
    cells = [cell for cell in book.cells if cell.source.strip()]
    cells.sort(key=lambda cell: given[cell.position])
    return CellHistory([Cell(given[cell.position], cell.source, cell.cell_id) for cell in cells], transform=transform())


def placed(error: PastedError, before: NotebookFile, after: NotebookFile) -> PastedError | None:
    """The error with its frames where their lines are in `after`; None where one of them is not there any more.

    `before` is the notebook in which it is stored. Its cells may have been edited since they ran, too.
    """
    frames = []
    for frame in error.frames:
        now = _placed(frame, before.cells, after.cells) if frame.cell is not None else frame
        if now is None:
            return None
        frames.append(now)
    inner = placed(error.before, before, after) if error.before is not None else None
    if error.before is not None and inner is None:
        return None
    return replace(error, frames=tuple(frames), before=inner)


def _placed(frame: PastedFrame, before: Sequence[FileCell], after: Sequence[FileCell]) -> PastedFrame | None:
    for old, new in zip(before, after, strict=True):
        if old.number != frame.cell:
            continue
        line = _nearest(old.source, frame)
        if line is None:
            return frame if old.source == new.source and _is_of_magic(frame) else None
        now = _followed(old.source, new.source, line)
        if now is None:
            return None
        if (now, old.source) == (frame.line, new.source):
            return frame
        text = new.source.splitlines()[now - 1]
        columns = frame.columns if text.strip() == frame.source else None
        return replace(frame, line=now, source=text.strip(), columns=columns, around=((now, text),))
    return frame


def _nearest(source: str, frame: PastedFrame) -> int | None:
    """The line of a cell that the frame shows: at its number, else the nearest that reads the same."""
    same = [number for number, line in enumerate(source.splitlines(), 1) if line.strip() == frame.source]
    return min(same, key=lambda number: abs(number - frame.line), default=None)


def _is_of_magic(frame: PastedFrame) -> bool:
    """What IPython makes of a cell stands in no cell."""
    return "get_ipython()" in frame.source or not frame.source


def _followed(old: str, new: str, line: int) -> int | None:
    """Where line `line` of the old text is in the new one, edited or not."""
    if old == new:
        return line
    matcher = difflib.SequenceMatcher(None, old.splitlines(), new.splitlines(), autojunk=False)
    for kind, start, end, new_start, new_end in matcher.get_opcodes():
        if start <= line - 1 < end:
            if kind == "equal":
                return new_start + (line - 1 - start) + 1
            was = old.splitlines()[line - 1]
            edited = difflib.get_close_matches(was, new.splitlines()[new_start:new_end], n=1)
            return new.splitlines().index(edited[0], new_start) + 1 if edited else None
    return None
