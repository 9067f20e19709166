"""What iterators, generators, caches and exceptions hold, which show it to nobody."""

from __future__ import annotations

import collections
import functools
import itertools
from _queue import SimpleQueue
from collections.abc import Iterator
from types import AsyncGeneratorType, CoroutineType, FrameType, GeneratorType, TracebackType
from typing import Any

MOST_FRAMES = 1_000  # of one exception

_subclass = type.__subclasscheck__
_plain: dict[Any, Any] = {}
_ordered: collections.OrderedDict[Any, Any] = collections.OrderedDict()
_VIEWS: tuple[Any, ...] = tuple(view for one in (_plain, _ordered) for view in (one.keys(), one.values(), one.items()))
_EMPTY: tuple[Any, ...] = ([], (), set(), {}, collections.deque(), *_VIEWS)

# By id of the class: `gc.get_referents` asks these, in C, what they hold. ``f_locals`` of a generator's frame would
# keep a copy of it (CPython before 3.13).
OF_C = frozenset(
    id(kind)
    for kind in (
        *map(type, map(iter, _EMPTY)), *map(type, _VIEWS), type(reversed([])), type(reversed({})), zip, map, filter,
        enumerate, reversed, GeneratorType, CoroutineType, AsyncGeneratorType, SimpleQueue,
        type(functools.lru_cache(int)), *(kind for kind in vars(itertools).values() if type(kind) is type),
    )
)  # fmt: skip


def of_exception(o: Any) -> Iterator[tuple[str, Any]]:
    """The arguments of an exception, what it came from, and the locals of its frames; each with how it is told."""
    for name in ("args", "__cause__", "__context__"):
        yield f".{name}", BaseException.__dict__[name].__get__(o)
    tb: TracebackType | None = BaseException.__dict__["__traceback__"].__get__(o)
    for _ in range(MOST_FRAMES):
        if tb is None:
            return
        frame, tb = tb.tb_frame, tb.tb_next
        if frame.f_locals is not frame.f_globals:  # a cell's own locals are the user's names
            for name, value in locals_of(frame):
                yield f"{{{name} in {frame.f_code.co_name}()}}", value


def locals_of(frame: FrameType) -> list[tuple[str, Any]]:
    """The locals of a frame; none of a class body whose metaclass keeps them in a mapping of its own."""
    held = frame.f_locals
    if _subclass(dict, type(held)):
        return list(dict.items(held))
    return list(held.items()) if type(held).__name__ == "FrameLocalsProxy" else []  # since Python 3.13
