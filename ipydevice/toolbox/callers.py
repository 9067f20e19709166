"""Where in the user's code a tool was called, and how the arguments were written there."""

from __future__ import annotations

import ast
from types import FrameType

from ipydevice.devicecheck import callsite
from ipydevice.devicecheck.session import around
from ipydevice.diagnose import locate
from ipydevice.diagnose.frames import Sources
from ipydevice.diagnosis import Place


def place_of(frame: FrameType) -> Place:
    """The line that `frame` is at, in a cell or a file."""
    return callsite.place_of(frame.f_code, frame.f_lineno, sources_of(frame))


def sources_of(frame: FrameType) -> Sources:
    """The texts of the session that `frame` belongs to."""
    return Sources(around(frame)[0])


def argument_names(frame: FrameType, count: int) -> list[str]:
    """The positional arguments of the call that `frame` is in, as written; "argument 2" where no text tells."""
    plain = [f"argument {number}" for number in range(1, count + 1)]
    source = sources_of(frame).of_code_file(frame.f_code.co_filename)
    if source is None or not count:
        return plain
    call = locate.running(source, frame.f_lineno, callsite.span_of(frame.f_code, frame.f_lasti))
    if isinstance(call, ast.Expr | ast.Return | ast.Assign | ast.withitem):
        call = getattr(call, "value", None)
    if not isinstance(call, ast.Call):
        return plain
    written = call.args[-count:] if len(call.args) >= count else []  # `assert_on(device, x)` has others before them
    if any(isinstance(argument, ast.Starred) for argument in call.args) or len(written) < count:
        return plain
    return [source.segment(argument) for argument in written]
