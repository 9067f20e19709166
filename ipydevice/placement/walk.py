"""Every tensor inside an object."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from types import BuiltinFunctionType, CodeType, FrameType, ModuleType, TracebackType
from typing import Any

from ipydevice.placement.kinds import array_library, is_a, is_module, is_optimizer, is_parameter, is_tensor
from ipydevice.placement.members import Via, members
from ipydevice.placement.tensors import device_of

_LOOKED_AT = 200_000  # members of one walk: a bound by count, never by the clock

_subclass = type.__subclasscheck__

# Compared by identity: a set of classes would run the __hash__ and __eq__ of a metaclass.
_LEAVES = frozenset(
    id(kind)
    for kind in (
        int, float, bool, str, bytes, bytearray, complex, type(None), range, slice, memoryview, type(...),
        ModuleType, CodeType, FrameType, TracebackType, BuiltinFunctionType, type(NotImplemented),
        type(str.join), type(object.__init__), type(dict.__dict__["fromkeys"]),
    )
)  # fmt: skip


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
    key: Any = None  # of optimizer state: the parameter


def _is_container(o: object) -> bool:
    cls = type(o)
    return any(_subclass(base, cls) for base in (dict, list, tuple, set, frozenset, deque))


def walk(o: object, *, limit: int = 2000, depth: int = 8) -> Iterator[Found]:
    """Every tensor inside `o`, nearest first, each object once.

    At most `limit` tensors, `depth` levels and 200,000 members are looked at; modules of Python are not entered.
    """
    if is_tensor(o):
        if limit > 0:
            yield Found("", o, None, o, "")
        return
    seen: dict[int, Any] = {id(o): o}  # holds them, so that no id is used twice meanwhile
    queue: deque[tuple[Any, str, Any, str, Via | None, Any, int]] = deque([(o, "", o, "", None, None, 0)])
    looked_at = found = 0
    while queue:
        holder, path, owner, inside, above, key, level = queue.popleft()
        for member in members(holder):
            value = member.value
            looked_at += 1
            if looked_at > _LOOKED_AT:
                return
            if id(type(value)) in _LEAVES or id(value) in seen:
                continue
            seen[id(value)] = value
            via: Via = above if above in ("state", "closure") and member.via == "item" else member.via
            member_key = key if member.key is None else member.key
            attribute = inside + member.path
            if is_tensor(value):
                yield Found(path + member.path, value, via, owner, attribute.removeprefix("."), member_key)
                found += 1
                if found >= limit:
                    return
            elif level < depth and not _subclass(ModuleType, type(value)):
                mere = _is_container(value)
                queue.append(
                    (
                        value,
                        path + member.path,
                        owner if mere else value,
                        attribute if mere else "",
                        via,
                        member_key,
                        level + 1,
                    )
                )


def devices_of(o: object) -> tuple[str, ...]:
    """Devices of everything inside `o`, each once, in the order in which they are met."""
    if is_tensor(o) or array_library(o) is not None:
        return (device_of(o),)
    return tuple(dict.fromkeys(device_of(found.value) for found in walk(o, limit=1_000_000, depth=64)))


_KINDS = (
    ("packed", "packed sequence"),
    ("scheduler", "scheduler"),
    ("scaler", "scaler"),
    ("loader", "loader"),
    ("dataset", "dataset"),
    ("generator", "generator"),
    ("stream", "stream"),
    ("cuda stream", "stream"),
    ("storage", "storage"),
    ("typed storage", "storage"),
)


def kind_of(o: object) -> str | None:
    """What sort of thing with a device `o` is; None where no device is in it.

    "parameter", "buffer", "tensor", "module", "optimizer", "scheduler", "scaler", "loader", "dataset",
    "generator", "stream", "storage", "packed sequence", "array"; "container", "function" and "object" where
    a tensor is inside.
    """
    if id(type(o)) in _LEAVES or _subclass(ModuleType, type(o)):
        return None
    if is_tensor(o):
        return "parameter" if is_parameter(o) else "buffer" if is_a(o, "buffer") else "tensor"
    if is_module(o):
        return "module"
    if is_optimizer(o):
        return "optimizer"
    for name, kind in _KINDS:
        if is_a(o, name):
            return kind
    if array_library(o) is not None:
        return "array"
    if next(walk(o, limit=1), None) is None:
        return None
    if _is_container(o):
        return "container"
    return "function" if type(o).__name__ in ("function", "method", "partial") else "object"
