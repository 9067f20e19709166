"""What one object directly holds, and under which name."""

from __future__ import annotations

import collections
import functools
import gc
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from types import CellType, FunctionType, MappingProxyType, MemberDescriptorType, MethodType, ModuleType
from typing import Any, Literal

from ipydevice.placement.kinds import (
    attributes,
    class_dicts,
    is_a,
    is_module,
    is_optimizer,
    is_tensor,
    made_by_statement,
    torch_class,
)

Via = Literal["parameter", "buffer", "module", "attribute", "item", "state", "closure"]
MOST_ITEMS = 100_000  # of one container; the rest is not looked at

_subclass = type.__subclasscheck__

# Of nn.Module.__dict__: what the module keeps for itself (torch/nn/modules/module.py, Module.__init__).
MODULE_INTERNALS = frozenset({
    "training", "_parameters", "_buffers", "_modules", "_non_persistent_buffers_set", "_is_full_backward_hook",
    "_is_hf_initialized", "_concrete_type", "_initializing", "_c", "forward", "_old_forward", "_torchdynamo_orig_callable", "dynamo_ctx",
})  # fmt: skip
_BY_POSITION = ("Sequential", "ModuleList", "ParameterList")
_BY_KEY = ("ModuleDict", "ParameterDict")


@dataclass(slots=True)
class Member:
    """One thing that an object holds.

    `path` is what to write behind the object's name to reach it: ``.weight``, ``['q']``, ``[0]``.
    In an optimizer's state the parameter is ``p`` and `key` is that parameter.
    """

    path: str
    value: Any
    via: Via
    key: Any = None


def members(o: object) -> Iterator[Member]:
    """What `o` holds itself, one level deep, in the order in which it was put there."""
    cls = type(o)
    if _subclass(dict, cls):
        yield from _items(o, "item")
    elif _subclass(tuple, cls):
        yield from _tuple(o)
    elif _subclass(list, cls):
        for i, value in enumerate(list.__getitem__(o, slice(MOST_ITEMS))):  # type: ignore[index]
            yield Member(f"[{i}]", value, "item")
    elif _subclass(collections.deque, cls):
        for i, value in enumerate(_taken(collections.deque.__iter__(o))):  # type: ignore[arg-type]
            yield Member(f"[{i}]", value, "item")
    elif _subclass(set, cls) or _subclass(frozenset, cls):
        base: Any = set if _subclass(set, cls) else frozenset
        for value in _taken(base.__iter__(o)):
            yield Member("{...}", value, "item")
    elif cls is MappingProxyType:
        for inner in gc.get_referents(o):  # reading through the proxy would run the mapping's own code
            if _subclass(dict, type(inner)):
                yield from _items(inner, "item")
        return
    elif is_module(o):
        yield from _module(o)
        return
    elif is_optimizer(o):
        yield from _optimizer(o)
        return
    elif cls is FunctionType:
        yield from _function(o)
    elif cls is MethodType:
        yield Member(".__self__", o.__self__, "closure")  # type: ignore[attr-defined]
        yield Member(".__func__", o.__func__, "closure")  # type: ignore[attr-defined]
        return
    elif cls is CellType:
        yield from _cell(o, ".cell_contents")
        return
    elif cls is ModuleType or _subclass(ModuleType, cls):
        return
    elif _subclass(type, cls):
        yield from class_attributes(class_dicts(o)[:1])  # type: ignore[arg-type]
        return
    elif _subclass(functools.partial, cls):
        for name in ("func", "args", "keywords"):
            yield Member(f".{name}", functools.partial.__dict__[name].__get__(o), "closure")
    elif _subclass(collections.UserDict, cls):
        data = attributes(o).get("data")
        if _subclass(dict, type(data)):
            yield from _items(data, "item")
            return
    yield from _object(o)


def _taken(it: Iterator[Any]) -> list[Any]:
    """The first items at once, so that a thread that changes the container meanwhile does no harm."""
    for _ in range(3):
        try:
            return list(islice(it, MOST_ITEMS))
        except RuntimeError:  # changed size during iteration: in free-threaded builds only
            continue
    return []


def _items(o: Any, via: Via) -> Iterator[Member]:
    for key, value in _taken(iter(dict.items(o))):
        yield Member(f"[{key_text(key)}]", value, via)


def _tuple(o: Any) -> Iterator[Member]:
    values = tuple.__getitem__(o, slice(MOST_ITEMS))
    fields = field_names(type(o))
    for i, value in enumerate(values):
        path = f".{fields[i]}" if i < len(fields) else f"[{i}]"
        yield Member(path, value, "item")


def field_names(cls: type) -> tuple[str, ...]:
    """The fields of a named tuple's class, or nothing."""
    if cls is tuple:
        return ()
    for space in class_dicts(cls):
        fields = space.get("_fields")
        if type(fields) is tuple and all(type(field) is str for field in fields):
            return fields
    return ()


def key_text(key: object) -> str:
    """A key as one would write it; "..." where that would take code of the user's."""
    kind = type(key)
    if kind is str or kind is int or kind is float or kind is bool or kind is bytes or key is None:
        return repr(key)
    if kind is tuple:
        inner = ", ".join(key_text(part) for part in key)  # type: ignore[attr-defined]
        return f"({inner},)" if len(key) == 1 else f"({inner})"  # type: ignore[arg-type]
    return "..."


def _text(name: object) -> str:
    return name if type(name) is str else str.__str__(name) if _subclass(str, type(name)) else "..."  # type: ignore[arg-type]


def _dotted(name: str) -> str:
    return f".{name}" if name.isidentifier() else f"[{name}]" if name.isdigit() else f"[{name!r}]"


def _child_path(o: object) -> Any:
    """How children of this module are reached: by position, by key or by name."""
    name = type.__dict__["__name__"].__get__(type(o))
    if name in _BY_KEY:
        return lambda child: f"[{child!r}]"
    return _dotted


def table_of(o: object, name: str) -> Iterable[tuple[str, Any]]:
    """The pairs of ``_parameters``, ``_buffers`` or ``_modules`` of a module, also of a ScriptModule."""
    table = attributes(o).get(name)
    if _subclass(dict, type(table)):
        return _taken(iter(dict.items(table)))
    if not is_a(o, "script"):
        return ()
    # torch/jit/_script.py keeps these three in wrappers around C++ tables.
    inner = attributes(table)
    if name == "_modules":
        return _taken(iter(dict.items(inner.get("_python_modules", {}))))
    table = inner.get("_c")
    try:
        return list(table.items()) if is_a(table, "script parameters") or is_a(table, "script buffers") else ()
    except (AttributeError, RuntimeError):
        return ()


def _module(o: object) -> Iterator[Member]:
    path = _child_path(o)
    for table, via in _TABLES:
        for name, value in table_of(o, table):
            if value is not None:
                yield Member(path(_text(name)), value, via)
    for name, value in _taken(iter(dict.items(attributes(o)))):  # type: ignore[arg-type]
        if name not in MODULE_INTERNALS and not (type(value) is collections.OrderedDict and not value):
            yield Member(_dotted(_text(name)), value, "attribute")
    yield from _slots_and_class(o)


_TABLES: tuple[tuple[str, Via], ...] = (("_parameters", "parameter"), ("_buffers", "buffer"), ("_modules", "module"))


def _optimizer(o: object) -> Iterator[Member]:
    held = attributes(o)
    state = held.get("state")
    if _subclass(dict, type(state)):
        for key, value in _taken(iter(dict.items(state))):
            name = "p" if is_tensor(key) else key_text(key)
            yield Member(f".state[{name}]", value, "state", key)
    for name, value in _taken(iter(dict.items(held))):  # type: ignore[arg-type]
        if name != "state":
            yield Member(_dotted(_text(name)), value, "attribute")


def _function(o: Any) -> Iterator[Member]:
    names = o.__code__.co_freevars
    for i, cell in enumerate(o.__closure__ or ()):
        for member in _cell(cell, f".__closure__[{i}].cell_contents"):
            member.key = names[i] if i < len(names) else None
            yield member
    for i, value in enumerate(o.__defaults__ or ()):
        yield Member(f".__defaults__[{i}]", value, "closure")
    for name, value in (o.__kwdefaults__ or {}).items():
        yield Member(f".__kwdefaults__[{name!r}]", value, "closure")


def _cell(cell: Any, path: str) -> Iterator[Member]:
    try:
        yield Member(path, cell.cell_contents, "closure")
    except ValueError:  # the variable is not bound yet
        return


def _object(o: object) -> Iterator[Member]:
    held = attributes(o)
    if held:
        for name, value in _taken(iter(dict.items(held))):  # type: ignore[arg-type]
            yield Member(_dotted(_text(name)), value, "attribute")
    yield from _slots_and_class(o)


def _slots_and_class(o: object) -> Iterator[Member]:
    cls = type(o)
    if not made_by_statement(cls) or cls is torch_class("tensor") or cls is torch_class("parameter"):
        return
    spaces = class_dicts(cls)
    for space in spaces:
        for name, value in list(space.items()):
            if type(value) is MemberDescriptorType and type(name) is str and not name.startswith("__"):
                try:
                    yield Member(f".{name}", value.__get__(o, cls), "attribute")
                except (AttributeError, TypeError, SystemError):
                    continue
    held = attributes(o)
    for member in class_attributes(spaces):
        if member.path[1:] not in held:
            yield member


def class_attributes(spaces: Iterable[Mapping[str, Any]]) -> Iterator[Member]:
    """Tensors, modules and containers that stand in a class body."""
    for space in spaces:
        for name, value in list(space.items()):
            if name.startswith("__"):
                continue
            kind = type(value)
            if kind is dict or kind is list or kind is tuple or is_tensor(value) or is_module(value):
                yield Member(_dotted(name), value, "attribute")
