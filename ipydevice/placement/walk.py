"""Every tensor inside an object."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import chain, islice
from types import BuiltinFunctionType, CodeType, FrameType, FunctionType, MethodType, ModuleType, TracebackType
from typing import Any, Literal, NamedTuple

from ipydevice.placement.kinds import (
    array_library,
    home_of,
    is_a,
    is_event,
    is_module,
    is_optimizer,
    is_parameter,
    is_stream,
    is_tensor,
    torch_class,
)
from ipydevice.placement.members import (
    MOST_ITEMS,
    ClassParts,
    Via,
    holdings,
    is_container,
    is_namespace,
    size_of,
)

MOST_MEMBERS = 200_000  # of one walk: a bound by count, never by the clock
MOST_PLAIN = 1_000_000  # items of a container of numbers and texts, which are looked at in C:
DEPTH = 64  # levels, where all is wanted
_RECORD = 256  # items, of a container that is looked through at once
_PER_LOOK = 20  # so many of them take the time of one look

_subclass = type.__subclasscheck__

# By identity: a set of classes would run the __hash__ and __eq__ of a metaclass.  All of these live forever.
LEAVES = frozenset(
    id(kind)
    for kind in (
        int, float, bool, str, bytes, bytearray, complex, type(None), range, slice, memoryview, type(...),
        ModuleType, CodeType, FrameType, TracebackType, BuiltinFunctionType, type(NotImplemented),
        type(str.join), type(object.__init__), type(dict.__dict__["fromkeys"]),
    )
)  # fmt: skip

# Packages whose objects are large webs without tensors; a shell or a figure would cost 200,000 looks for nothing.
NO_TENSORS = frozenset({
    "IPython", "ipykernel", "traitlets", "jupyter_client", "ipywidgets", "matplotlib", "pandas", "plotly", "altair",
    "logging", "threading", "asyncio", "zmq", "tornado", "tqdm", "pathlib", "datetime", "re", "random", "ipydevice",
})  # fmt: skip


@dataclass(slots=True)
class Found:
    """One tensor inside an object.

    `path` leads from the object to it, `owner` is the nearest module, optimizer or object (not a
    mere container) that holds it, and `attribute` its path in the owner, without the first dot.
    """

    path: str
    value: Any
    via: Via | None  # how the last holder has it; None: the object is itself the tensor
    owner: Any
    attribute: str
    key: Any = None  # of optimizer state: the parameter; of a closure: the variable's name


Cut = Literal["", "plain", "items", "members", "depth"]


@dataclass(slots=True)
class Bounds:
    """How far a walk goes; `cut` tells afterwards which bound has kept something from being looked at, if any."""

    limit: int = 2000  # tensors
    depth: int = 8  # levels
    looks: int = MOST_MEMBERS
    cut: Cut = ""


def is_leaf(o: object) -> bool:
    """Whether `o` is a number, text or other thing that can hold no tensor."""
    return id(type(o)) in LEAVES or _subclass(ModuleType, type(o))


def walk(
    o: object, *, limit: int = 2000, depth: int = 8, looks: int = MOST_MEMBERS, parts: ClassParts | None = None
) -> Iterator[Found]:
    """Every tensor inside `o`, nearest first, each object once; what ``globals()`` it keeps is not entered.

    At most `limit` tensors are told, `depth` levels and `looks` members looked at; Python modules are not entered.
    `parts` knows classes that were met before, as in `members`.
    """
    return walk_within(Bounds(limit, depth, looks), o, parts)


def walk_within(bounds: Bounds, o: object, parts: ClassParts | None = None) -> Iterator[Found]:
    """`walk`, which tells in `bounds` whether it has seen everything."""
    limit = bounds.limit
    if is_tensor(o):
        if limit > 0:
            yield Found("", o, None, o, "")
        return
    seen = {id(o): o}
    yield from open_up(deque([Visit(o, "", o, "", None, None, 0)]), seen, {} if parts is None else parts, bounds)


class Visit(NamedTuple):
    """An object to be opened, and how it was reached."""

    value: Any
    path: str
    owner: Any
    inside: str  # path from the owner
    via: Via | None
    key: Any
    level: int


def open_up(queue: deque[Visit], seen: dict[int, Any], parts: ClassParts, bounds: Bounds) -> Iterator[Found]:
    """Opens what is in the queue; `seen` holds what it names, so that no id is used twice meanwhile."""
    limit, depth, looks = bounds.limit, bounds.depth, bounds.looks
    while queue:
        holder, path, owner, inside, above, above_key, level = queue.popleft()
        size = size_of(holder)
        if size > _RECORD:  # smaller ones were looked through before they came into the queue
            most = min(MOST_PLAIN, max(1, looks) * _PER_LOOK)
            if _is_plain(holder, most):
                looks -= min(size, most) // _PER_LOOK
                if size > most:
                    bounds.cut = bounds.cut or "plain"
                continue
            if size > MOST_ITEMS:
                bounds.cut = bounds.cut or "items"
        for write, name, value, via, key in holdings(holder, parts):
            looks -= 1
            if looks < 0:
                bounds.cut = "members"
                return
            if id(type(value)) in LEAVES or id(value) in seen:
                continue
            seen[id(value)] = value
            plain = _plain_items(value)
            if plain >= 0:
                looks -= plain // _PER_LOOK
                continue
            step = write(name)
            if via == "item" and (above == "state" or above == "closure"):
                via = above
            if key is None:
                key = above_key
            if is_tensor(value):
                yield Found(path + step, value, via, owner, (inside + step).removeprefix("."), key)
                limit -= 1
                if limit <= 0:
                    bounds.cut = "members"
                    return
            elif (
                not _subclass(ModuleType, type(value)) and home_of(value) not in NO_TENSORS and not is_namespace(value)
            ):
                if level >= depth:
                    bounds.cut = bounds.cut or "depth"
                elif is_container(value):
                    queue.append(Visit(value, path + step, owner, inside + step, via, key, level + 1))
                else:
                    queue.append(Visit(value, path + step, value, "", via, key, level + 1))


def _items(o: Any) -> Iterable[Any] | None:
    """What a built-in container holds, for a loop in C; None for everything else."""
    kind = type(o)
    if kind is dict:
        return chain(dict.keys(o), dict.values(o))
    if kind is list or kind is tuple or kind is set or kind is frozenset or kind is deque:
        return o  # type: ignore[no-any-return]
    return None


def _is_plain(o: Any, most: int) -> bool:
    """Whether the first `most` items of a built-in container are numbers and texts only; for other things False."""
    items = _items(o)
    try:
        return items is not None and LEAVES.issuperset(map(id, map(type, islice(items, 2 * most))))
    except RuntimeError:  # changed size during iteration, possible in free-threaded builds
        return False


def _plain_items(o: Any, most: int = _RECORD, levels: int = 3) -> int:
    """The number of items in a small built-in container and in the containers in it, where all are numbers and texts,
    as in a record of JSON; -1 where something else is in it, or more than `most`.
    """
    items = _items(o)
    count = most if items is None else len(o)  # keys and values of a dictionary count as one
    if items is None or count > most:
        return -1
    try:
        others = [item for item in items if id(type(item)) not in LEAVES]
    except RuntimeError:  # as above
        return -1
    if others and levels == 0:
        return -1
    for item in others:
        found = _plain_items(item, most - count, levels - 1)
        if found < 0:
            return -1
        count += found
    return count


_KINDS = (
    ("packed", "packed sequence"),
    ("scheduler", "scheduler"),
    ("scaler", "scaler"),
    ("loader", "loader"),
    ("dataset", "dataset"),
    ("generator", "generator"),
    ("storage", "storage"),
    ("typed storage", "storage"),
)


def kind_of(o: object, bounds: Bounds | None = None) -> str | None:
    """What sort of thing with a device `o` is; None where no device is in it.

    "parameter", "tensor", "module", "optimizer", "scheduler", "scaler", "loader", "dataset", "generator",
    "stream", "event", "storage", "packed sequence", "array"; "container", "function" and "object" where a tensor is
    inside, as far as `bounds` lets look; they tell then whether None is certain.
    """
    if type(o) is torch_class("tensor"):
        return "tensor"
    if is_leaf(o):
        return None
    if is_tensor(o):
        return "parameter" if is_parameter(o) else "tensor"
    if is_module(o):
        return "module"
    if is_optimizer(o):
        return "optimizer"
    if is_stream(o):
        return "stream"
    if is_event(o):
        return "event"
    for name, kind in _KINDS:
        if is_a(o, name):
            return kind
    if array_library(o) is not None:
        return "array"
    if home_of(o) in NO_TENSORS or is_namespace(o):
        return None
    if not _holds_tensor(o, bounds or Bounds(depth=DEPTH, looks=FEW_LOOKS)):
        return None
    if is_container(o):
        return "container"
    cls = type(o)
    called = cls is FunctionType or cls is MethodType or cls is partial or cls is _CACHED
    return "function" if called else "object"


_CACHED = type(lru_cache(int))


def _holds_tensor(o: object, bounds: Bounds) -> bool:
    """Whether a tensor is inside, as far as a bounded look tells: of a long list also what its first items hold."""
    bounds.limit = 1
    if next(walk_within(bounds, o), None) is not None:
        return True
    if not bounds.cut:
        return False
    first = (item.value for item in islice(holdings(o, {}), _FIRST)) if is_container(o) else ()
    return any(next(walk(one, limit=1, looks=_FIRST), None) is not None for one in first if not is_namespace(one))


FEW_LOOKS = 20_000  # of `kind_of`: 10 to 100 ms
_FIRST = 100
