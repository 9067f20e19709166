"""All tensors inside an object without the way to them: for counting devices and bytes."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import chain, islice
from typing import Any

from ipydevice.placement.kinds import array_library, home_of, is_a, is_module, is_tensor, torch_class
from ipydevice.placement.members import (
    COMPOSABLE,
    MODULE_HOOKS,
    MODULE_INTERNALS,
    ClassParts,
    is_namespace,
    parts_of,
    plain_text,
)
from ipydevice.placement.reader import FactReader
from ipydevice.placement.tensors import device_of, quiet
from ipydevice.placement.walk import DEPTH, LEAVES, MOST_MEMBERS, NO_TENSORS, Bounds, Cut, Visit, open_up, walk_within

_SMALL = 64
_NOT_PLAIN = MODULE_INTERNALS | MODULE_HOOKS
_subclass = type.__subclasscheck__


@dataclass(slots=True)
class Inside:
    """The tensors of an object, each once."""

    registered: list[Any] = field(default_factory=list)  # parameters and buffers, which ``.to()`` moves
    loose: list[Any] = field(default_factory=list)  # all others
    cut: Cut = ""  # which bound has kept something from being looked at: there may be more tensors

    def __iter__(self) -> Iterator[Any]:
        return chain(self.registered, self.loose)


def inside(o: object, parts: ClassParts | None = None) -> Inside:
    """Every tensor in `o`, at most 200,000 that are in no module's tables; hooks of modules are not entered.

    Who asks for many objects hands the same dictionary as `parts` each time: classes are then read once.
    """
    parts = {} if parts is None else parts
    if is_tensor(o):
        return Inside(loose=[o])
    if is_module(o) and not is_a(o, "script"):
        return _inside_module(o, parts)
    found, bounds = Inside(), Bounds(MOST_MEMBERS, DEPTH)
    for one in walk_within(bounds, o, parts):
        (found.registered if one.via in ("parameter", "buffer") else found.loose).append(one.value)
    found.cut = bounds.cut
    return found


def devices_of(o: object) -> tuple[str, ...]:
    """Devices of everything inside `o`, each once, in the order in which they are met."""
    if is_tensor(o) or array_library(o) is not None:
        return (device_of(o),)
    if torch_class("tensor") is None:
        return ()
    with quiet():
        return FactReader().devices(inside(o))


def _inside_module(root: object, parts: ClassParts) -> Inside:
    """One loop written out: a model has thousands of modules, and calls would double the time.

    tests/benchmarks/bench_inventory.py compares it with ``named_parameters()`` and ``named_buffers()``.
    """
    found = Inside()
    registered: list[Any] = []
    seen = {id(root): root}
    modules = [root]
    module_classes = {id(type(root))}  # of instances that `seen` keeps alive
    others: deque[Visit] = deque()
    own_dict = torch_class("module").__dict__["__dict__"].__get__  # `attributes`, for modules alone
    prefix = _own_prefix(own_dict(root))
    own, last = len(prefix), prefix[-1] if prefix else None
    nothing: list[Any] = []
    for module in modules:
        held = own_dict(module)
        for table in (held.get("_parameters"), held.get("_buffers")):
            if table and (type(table) is dict or _subclass(dict, type(table))):
                registered += dict.values(table)  # in one step of C, whatever other threads do
        children = held.get("_modules")
        values = list(dict.values(children)) if children and _subclass(dict, type(children)) else nothing
        # The last of the module's own names in its place means that all of them are in theirs.
        if own and own <= len(held) and list(held)[own - 1] is last:
            # Most attributes are numbers and their like; names matter only where one is not.
            plain = [value for value in list(held.values())[own:] if id(type(value)) not in LEAVES]
            for value in plain:
                if not _holds_nothing(value):
                    values = values + _plain_values(held, own)
                    break
        else:
            values = values + _plain_values(held, 0)
        part = parts.get(id(type(module))) or parts_of(type(module), parts)
        if part[1].values:
            values = values + [value for _, value in part[1].values]
        for value in values:
            if value is None or id(value) in seen:
                continue
            seen[id(value)] = value
            if id(type(value)) in module_classes:
                modules.append(value)
            elif is_module(value):
                module_classes.add(id(type(value)))
                modules.append(value)
            elif is_tensor(value):
                found.loose.append(value)
            elif home_of(value) not in NO_TENSORS and not is_namespace(value):
                others.append(Visit(value, "", None, "", None, None, 1))
    tensors = dict(zip(map(id, registered), registered, strict=True))
    tensors.pop(id(None), None)
    found.registered = list(tensors.values())
    if others:
        bounds = Bounds(MOST_MEMBERS, DEPTH)
        found.loose += (one.value for one in open_up(others, seen, parts, bounds))
        found.cut = bounds.cut
    if found.loose:
        found.loose = [tensor for tensor in found.loose if id(tensor) not in tensors]
    return found


def _own_prefix(held: dict[str, Any]) -> list[str]:
    """The names that `nn.Module.__init__` puts first into each module's ``__dict__``, as this torch has them."""
    names = list(held)
    end = 0
    while end < len(names) and type(names[end]) is str and names[end] in _NOT_PLAIN:
        end += 1
    return names[:end]


def _plain_values(held: dict[str, Any], own: int) -> list[Any]:
    """Of a module's ``__dict__`` behind the first `own` names, what may hold a tensor and is not bookkeeping."""
    try:
        return [
            value
            for name, value in islice(held.items(), own, None)
            if not _holds_nothing(value)
            and (text := plain_text(name)) not in _NOT_PLAIN
            and not text.startswith(COMPOSABLE)
        ]
    except RuntimeError:  # another thread has set an attribute meanwhile
        return list(dict.values(held))


def _holds_nothing(value: Any, depth: int = 2) -> bool:
    """Whether a value is a number or text, or a small built-in container of nothing else, as configurations are."""
    cls = type(value)
    if cls is not dict and cls is not list and cls is not tuple and cls is not set:
        return id(cls) in LEAVES
    if len(value) > _SMALL:
        return False
    for one in [*value, *value.values()] if cls is dict else list(value):  # a generator takes twice as long
        if id(type(one)) not in LEAVES and (depth == 0 or not _holds_nothing(one, depth - 1)):
            return False
    return True
