"""Where in the user's code a call of torch stands, and its traceback as if nobody had watched."""

from __future__ import annotations

import inspect
import linecache
import os
import sys
from collections.abc import Iterator
from functools import cache
from itertools import islice
from types import CodeType, FrameType, TracebackType
from typing import NamedTuple

from ipydevice.diagnose.frames import OWN_FOLDER, Sources, is_library
from ipydevice.diagnosis import Place

_OVERRIDES = os.path.join("torch", "overrides.py")  # where a composite hands itself over to the mode
_SHELL = os.path.join("IPython", "core", "interactiveshell.py")
_VIRTUAL = os.path.join(OWN_FOLDER, "virtual") + os.sep
_DEEPEST = 200  # frames looked at

Key = tuple[tuple[CodeType, int], ...]


class Base(NamedTuple):
    """Where the check was opened: loops and ``try`` around it are none of the checked code's."""

    code: CodeType
    line: int

    @classmethod
    def of(cls, frame: FrameType) -> Base:
        return cls(frame.f_code, frame.f_lineno)


@cache
def is_user_file(file: str) -> bool:
    """Whether code of this file name is the user's own, a cell's or a file's."""
    if file.startswith(OWN_FOLDER) or is_library(file):
        return False
    return not file.startswith("<") or bool(linecache.getlines(file))


def outwards(frame: FrameType | None) -> Iterator[FrameType]:
    """`frame` and its callers, up to the cell that IPython runs."""
    for _ in range(_DEEPEST):
        if frame is None or (frame.f_code.co_name == "run_code" and frame.f_code.co_filename.endswith(_SHELL)):
            return
        yield frame
        frame = frame.f_back


def user_frames(frame: FrameType | None, base: Base | None = None) -> list[FrameType]:
    """The user's own frames from `frame` outwards, the innermost first; none above the base."""
    found: list[FrameType] = []
    for each in outwards(frame):
        if is_user_file(each.f_code.co_filename):
            found.append(each)
        if base is not None and each.f_code is base.code:
            break
    return found


def key_of(frames: list[FrameType]) -> Key:
    """The same for every run of the same call on the same way."""
    return tuple((frame.f_code, frame.f_lasti) for frame in frames)


def nearest(frame: FrameType | None) -> FrameType | None:
    """The innermost frame of the user's; None in a thread of a library's."""
    while frame is not None and not is_user_file(frame.f_code.co_filename):
        frame = frame.f_back
    return frame


def asking(frame: FrameType | None) -> FrameType | None:
    """The frame that wrote the call, be it a library's: without us, torch's way to us and the composite itself."""
    while frame is not None:
        file = frame.f_code.co_filename
        if file.endswith(_OVERRIDES):
            frame = frame.f_back
            if frame is not None and not frame.f_code.co_filename.startswith(OWN_FOLDER):
                frame = frame.f_back
        elif file.startswith(OWN_FOLDER):
            frame = frame.f_back
        else:
            break
    return frame


def place_of(code: CodeType, line: int, sources: Sources) -> Place:
    """The line as the user wrote it."""
    source = sources.of_code_file(code.co_filename)
    function = None if code.co_name == "<module>" else code.co_name
    if source is None:
        return Place(file=code.co_filename, line=line, function=function)
    cell = source.cell
    return Place(
        cell=None if cell is None else cell.number,
        cell_id=None if cell is None else cell.cell_id,
        file=source.file,
        line=source.raw_line(line),
        source=source.line_text(line),
        function=function,
    )


def traceback_of(error: BaseException, caller: FrameType | None) -> TracebackType | None:
    """The traceback that `error` would have had outside, without us and torch's way to us.

    Caught inside, an exception knows only the frames below; those above are alive and are added.
    """
    steps = [(frame, frame.f_lasti, frame.f_lineno) for frame in outwards(caller)][::-1]
    trace = error.__traceback__
    while trace is not None:
        steps.append((trace.tb_frame, trace.tb_lasti, trace.tb_lineno))
        trace = trace.tb_next
    built: TracebackType | None = None
    for frame, lasti, line in reversed(_unwatched(steps)):
        built = TracebackType(built, frame, lasti, line)
    return built


def frames_of(error: BaseException) -> list[FrameType]:
    """The user's own frames of a traceback, the innermost first."""
    found: list[FrameType] = []
    trace = error.__traceback__
    while trace is not None:
        if is_user_file(trace.tb_frame.f_code.co_filename):
            found.append(trace.tb_frame)
        trace = trace.tb_next
    return found[::-1]


def cut_own_frames(error: BaseException) -> None:
    """Take our frames out of the traceback of an exception that has left the checked code.

    A Ctrl-C may come while a call is repaired: the error that we were about to take away is none of the user's.
    """
    handled = error.__context__
    if isinstance(error, KeyboardInterrupt) and handled is not None and _passes_us(handled):
        error.__context__ = None
    trace = error.__traceback__
    steps: list[tuple[FrameType, int, int]] = []
    while trace is not None:
        steps.append((trace.tb_frame, trace.tb_lasti, trace.tb_lineno))
        trace = trace.tb_next
    kept = _unwatched(steps)
    if len(kept) == len(steps):
        return
    built: TracebackType | None = None
    for frame, lasti, line in reversed(kept):
        built = TracebackType(built, frame, lasti, line)
    error.__traceback__ = built


def _passes_us(error: BaseException) -> bool:
    trace = error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename.startswith(OWN_ROOM):
            return True
        trace = trace.tb_next
    return False


OWN_ROOM = os.path.dirname(os.path.abspath(__file__)) + os.sep


def _unwatched(steps: list[tuple[FrameType, int, int]]) -> list[tuple[FrameType, int, int]]:
    """Without our frames, and without the first, interrupted run of a composite such as F.cross_entropy."""
    kept: list[tuple[FrameType, int, int]] = []
    inside = False
    for step in steps:
        file = step[0].f_code.co_filename
        if file.startswith(OWN_ROOM) or (inside and file.startswith(OWN_FOLDER) and not file.startswith(_VIRTUAL)):
            inside = True  # the rooms that a repair calls upon are ours too
            continue
        if file.endswith(_OVERRIDES):
            if kept and not is_user_file(kept[-1][0].f_code.co_filename):
                kept.pop()
            continue
        kept.append(step)
    return kept


def forget_locals(caller: FrameType | None) -> None:
    """Drop the copies of their variables that frames have made for us: they would keep a batch alive.

    Up to Python 3.12 `frame.f_locals` of a function is a dictionary that stays with the frame (PEP 667).
    """
    if sys.version_info >= (3, 13):
        return
    for frame in outwards(caller):
        if frame.f_code.co_flags & inspect.CO_OPTIMIZED:  # a function's; a cell's are the namespace itself
            frame.f_locals.clear()


def span_of(code: CodeType, lasti: int) -> tuple[int, int, int, int] | None:
    """Where the running expression stands: line, end line, columns in UTF-8 bytes (PEP 657)."""
    found = next(islice(code.co_positions(), lasti // 2, None), None)
    if found is None:
        return None
    line, end_line, column, end_column = found
    if line is None or end_line is None or column is None or end_column is None:
        return None
    return line, end_line, column, end_column
