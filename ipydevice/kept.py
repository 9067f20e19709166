"""What a session holds beside the user's names: results in ``Out[]`` and ``_``, locals of the last error's frames.

The values are for one look at them; who asks must let go of the list again.
"""

from __future__ import annotations

import sys
import traceback
from collections.abc import Iterator
from itertools import islice
from types import FrameType, TracebackType
from typing import Any, Literal

from ipydevice.language import say

MOST_FRAMES = 4_000  # of an endless recursion; beyond `listing.memory.MOST_KEPT`, so that who is told so few knows
_UNDERSCORES = ("_", "__", "___")

Kept = tuple[Literal["output", "error"], str, Any]  # as `ipydevice.listing.Kept` has them


def last_error(shell: Any) -> BaseException | None:
    """The exception of the cell before, or else the last one that anybody showed."""
    result = shell.last_execution_result
    failed = None if result is None else result.error_in_exec or result.error_before_exec
    return failed or getattr(sys, "last_value", None)


def kept(shell: Any) -> list[Kept]:
    """Who holds what, as "Out[3]" and "x in train()"; nothing outside IPython."""
    return [] if shell is None else [*_outputs(shell), *_locals(shell)]


def _outputs(shell: Any) -> Iterator[Kept]:
    cache = shell.user_ns.get("_oh")
    if type(cache) is dict:
        for number, value in list(cache.items()):
            yield "output", f"Out[{number}]", value
    # IPython notes what it has put into the namespace, and keeps it there after %reset out (InteractiveShell.push)
    for space in (shell.user_ns, shell.user_ns_hidden):
        for name in _UNDERSCORES:
            if name in space:
                yield "output", name, space[name]


def _locals(shell: Any) -> Iterator[Kept]:
    from ipydevice.placement.opaque import locals_of  # loading the extension costs a kernel's user time

    frames = [frame for error in _errors(shell) for frame in _frames(error.__traceback__)]
    frames += _frames(getattr(shell.InteractiveTB, "tb", None))  # not there before the first error
    for frame in islice({id(frame): frame for frame in frames}.values(), MOST_FRAMES):
        if frame.f_locals is frame.f_globals:  # a cell's own frame: its locals are the user's names
            continue
        for name, value in locals_of(frame):
            yield "error", say("{name} in {function}()", name=name, function=frame.f_code.co_name), value


def _errors(shell: Any) -> Iterator[BaseException]:
    """The last error, also where several cells have run since, with what it came from."""
    waiting = [last_error(shell), getattr(sys, "last_value", None), getattr(sys, "last_exc", None)]
    seen: set[int] = set()
    while waiting:
        error = waiting.pop()
        if error is None or id(error) in seen:
            continue
        seen.add(id(error))
        yield error
        inner = BaseExceptionGroup.exceptions.__get__(error) if issubclass(type(error), BaseExceptionGroup) else ()
        waiting += [error.__cause__, error.__context__, *inner]


def _frames(tb: TracebackType | None) -> list[FrameType]:
    return [frame for frame, _ in traceback.walk_tb(tb)]
