"""Every tensor inside an object."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from itertools import islice
from types import BuiltinFunctionType, CodeType, FrameType, FunctionType, MethodType, ModuleType, TracebackType
from typing import Any, NamedTuple

from ipydevice.placement.kinds import (
    array_library,
    home_of,
    is_a,
    is_module,
    is_optimizer,
    is_parameter,
    is_stream,
    is_tensor,
    torch_class,
)
from ipydevice.placement.members import (
    ClassParts,
    Via,
    holdings,
    is_container,
    is_namespace,
)

MOST_MEMBERS = 200_000  # of one walk: a bound by count, never by the clock

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
    "logging", "threading", "asyncio", "concurrent", "zmq", "tornado", "tqdm", "pathlib", "datetime", "re", "random",
    "ipydevice",
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
    if is_tensor(o):
        if limit > 0:
            yield Found("", o, None, o, "")
        return
    seen = {id(o): o}
    yield from open_up(
        deque([Visit(o, "", o, "", None, None, 0)]), seen, {} if parts is None else parts, limit, depth, looks
    )


class Visit(NamedTuple):
    """An object to be opened, and how it was reached."""

    value: Any
    path: str
    owner: Any
    inside: str  # path from the owner
    via: Via | None
    key: Any
    level: int


def open_up(
    queue: deque[Visit], seen: dict[int, Any], parts: ClassParts, limit: int, depth: int, looks: int
) -> Iterator[Found]:
    """Opens what is in the queue; `seen` holds what it names, so that no id is used twice meanwhile."""
    while queue:
        holder, path, owner, inside, above, above_key, level = queue.popleft()
        for write, name, value, via, key in holdings(holder, parts):
            looks -= 1
            if looks < 0:
                return
            if id(type(value)) in LEAVES or id(value) in seen:
                continue
            seen[id(value)] = value
            step = write(name)
            if via == "item" and (above == "state" or above == "closure"):
                via = above
            if key is None:
                key = above_key
            if is_tensor(value):
                yield Found(path + step, value, via, owner, (inside + step).removeprefix("."), key)
                limit -= 1
                if limit <= 0:
                    return
            elif level < depth and not _subclass(ModuleType, type(value)) and home_of(value) not in NO_TENSORS:
                if is_namespace(value):
                    continue
                if is_container(value):
                    queue.append(Visit(value, path + step, owner, inside + step, via, key, level + 1))
                else:
                    queue.append(Visit(value, path + step, value, "", via, key, level + 1))


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


def kind_of(o: object) -> str | None:
    """What sort of thing with a device `o` is; None where no device is in it.

    "parameter", "tensor", "module", "optimizer", "scheduler", "scaler", "loader", "dataset",
    "generator", "stream", "storage", "packed sequence", "array"; "container", "function" and "object" where
    a tensor is inside.
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
    for name, kind in _KINDS:
        if is_a(o, name):
            return kind
    if array_library(o) is not None:
        return "array"
    if home_of(o) in NO_TENSORS or is_namespace(o) or not _holds_tensor(o):
        return None
    if is_container(o):
        return "container"
    cls = type(o)
    return "function" if cls is FunctionType or cls is MethodType or cls is partial else "object"


def _holds_tensor(o: object) -> bool:
    """Whether a tensor is inside, as far as a bounded look tells: of a long list also what its first items hold."""
    if next(walk(o, limit=1, looks=_LOOKS), None) is not None:
        return True
    first = (item.value for item in islice(holdings(o, {}), _FIRST)) if is_container(o) else ()
    return any(next(walk(one, limit=1, looks=_FIRST), None) is not None for one in first if not is_namespace(one))


_LOOKS = 20_000
_FIRST = 100
