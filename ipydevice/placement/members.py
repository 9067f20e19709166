"""What one object directly holds, and under which name."""

from __future__ import annotations

import collections
import functools
import gc
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from types import CellType, FunctionType, MappingProxyType, MemberDescriptorType, MethodType, ModuleType
from typing import Any, Literal, NamedTuple

from ipydevice.placement.kinds import (
    attributes,
    class_dicts,
    class_name,
    is_a,
    is_module,
    is_optimizer,
    is_tensor,
    made_by_statement,
)
from ipydevice.placement.opaque import OF_C, of_exception
from ipydevice.placement.tensors import grad_of

Via = Literal["parameter", "buffer", "module", "attribute", "item", "state", "closure"]
MOST_ITEMS = 100_000  # of one container; the rest is not looked at
MOST_KEY = 60  # characters of a key in a path

_subclass = type.__subclasscheck__

# Of nn.Module.__dict__: what the module keeps for itself (torch/nn/modules/module.py, jit/_script.py,
# _dynamo/eval_frame.py; accelerate/hooks.py keeps its hook and the method that it replaced), and
# DistributedDataParallel's lists of what is registered in the module that it wraps (nn/parallel/distributed.py).
MODULE_INTERNALS = frozenset({
    "training", "_parameters", "_buffers", "_modules", "_non_persistent_buffers_set", "_is_full_backward_hook",
    "_concrete_type", "_initializing", "_c", "forward", "_old_forward", "_hf_hook", "_torchdynamo_orig_callable",
    "dynamo_ctx",
    "_module_parameters", "modules_buffers", "named_module_buffers", "parameters_to_ignore",
})  # fmt: skip
COMPOSABLE = "__composable_api_state_key"  # of what fully_shard and replicate keep (torch/distributed/_composable)
MODULE_HOOKS = frozenset({
    "_backward_pre_hooks", "_backward_hooks", "_forward_hooks", "_forward_hooks_with_kwargs",
    "_forward_hooks_always_called", "_forward_pre_hooks", "_forward_pre_hooks_with_kwargs", "_state_dict_hooks",
    "_state_dict_pre_hooks", "_load_state_dict_pre_hooks", "_load_state_dict_post_hooks",
})  # fmt: skip
_TABLES: tuple[tuple[str, Via], ...] = (("_parameters", "parameter"), ("_buffers", "buffer"), ("_modules", "module"))
_BY_KEY = ("ModuleDict", "ParameterDict")  # of torch.nn


@dataclass(slots=True)
class Member:
    """One thing that an object holds.

    `path` is what to write behind the object's name to reach it: ``.weight``, ``['q']``, ``[0]``.
    In an optimizer's state the parameter is written ``p``, and `key` is that parameter; of a
    function's closure `key` is the variable's name.
    """

    path: str
    value: Any
    via: Via
    key: Any = None


class Holding(NamedTuple):
    """A member whose path is not written yet, since most are numbers and texts that nobody asks for."""

    write: Callable[[Any], str]
    name: Any
    value: Any
    via: Via
    key: Any = None


class ClassPart(NamedTuple):
    """What instances of a class have beside their ``__dict__``."""

    slots: tuple[tuple[str, MemberDescriptorType], ...]
    values: tuple[tuple[str, Any], ...]  # tensors, modules and containers of the class bodies


# By id of the class, within one walk only: longer would keep the user's classes alive, and a
# dictionary keyed by the class itself would run a metaclass's __hash__.
ClassParts = dict[int, tuple[type, ClassPart]]


def members(o: object, parts: ClassParts | None = None) -> Iterator[Member]:
    """What `o` holds itself, one level deep, in the order in which it was put there.

    Who asks for many objects hands the same dictionary as `parts` each time: classes are then read once.
    """
    for write, name, value, via, key in holdings(o, {} if parts is None else parts):
        yield Member(write(name), value, via, key)


def holdings(o: object, parts: ClassParts) -> Iterator[Holding]:
    """The members of `o`; `parts` is an empty dictionary that one walk hands on."""
    cls = type(o)
    if is_module(o):
        yield from _of_module(o, parts)
    elif is_tensor(o):
        grad = grad_of(o)
        if grad is not None:
            yield Holding(dotted, "grad", grad, "attribute")
        yield from _of_object(o, parts)
    elif is_optimizer(o):
        yield from _of_optimizer(o)
    elif cls is FunctionType:
        yield from _of_function(o)
    elif cls is MethodType:
        yield Holding(dotted, "__self__", o.__self__, "closure")  # type: ignore[attr-defined]
        yield Holding(dotted, "__func__", o.__func__, "closure")  # type: ignore[attr-defined]
    elif cls is CellType:
        yield from _of_cell(o, ".cell_contents", None)
    elif cls is MappingProxyType:
        for inner in gc.get_referents(o):  # reading through the proxy would run the mapping's own code
            if _subclass(dict, type(inner)):
                yield from _of_dict(inner)
    elif _subclass(type, cls):
        for name, value in class_values(class_dicts(o)[:1]):  # type: ignore[arg-type]
            yield Holding(dotted, name, value, "attribute")
    elif _subclass(BaseException, cls):
        for name, value in of_exception(o):
            yield Holding(str, name, value, "attribute")
        yield from _of_object(o, parts)
    elif id(cls) in OF_C:
        for value in gc.get_referents(o)[:MOST_ITEMS]:
            yield Holding(str, "{...}", value, "item")
    elif not _subclass(ModuleType, cls):
        for base, read in _CONTAINERS:
            if _subclass(base, cls):
                yield from read(o)
                if cls is base:
                    return
                break
        yield from _of_object(o, parts)


def taken(read: Callable[[Any], Iterable[Any]], o: Any) -> list[Any]:
    """The first items at once, so that a thread that changes the container meanwhile does no harm."""
    for _ in range(3):
        try:
            return list(islice(read(o), MOST_ITEMS))
        except RuntimeError:  # changed size during iteration, possible in free-threaded builds
            continue
    return []


def _of_dict(o: Any) -> Iterator[Holding]:
    for key, value in taken(dict.items, o):
        yield Holding(bracketed, key, value, "item")
        if type(key) is not str and type(key) is not int:
            yield Holding(str, "{...}", key, "item")


def _of_user_dict(o: Any) -> Iterator[Holding]:
    data = attributes(o).get("data")
    if _subclass(dict, type(data)):
        yield from _of_dict(data)


def _of_list(o: Any) -> Iterator[Holding]:
    for i, value in enumerate(list.__getitem__(o, slice(MOST_ITEMS))):
        yield Holding(bracketed, i, value, "item")


def _of_tuple(o: Any) -> Iterator[Holding]:
    fields = field_names(type(o))
    for i, value in enumerate(tuple.__getitem__(o, slice(MOST_ITEMS))):
        yield Holding(dotted, fields[i], value, "item") if i < len(fields) else Holding(bracketed, i, value, "item")


def _of_deque(o: Any) -> Iterator[Holding]:
    for i, value in enumerate(taken(collections.deque.__iter__, o)):
        yield Holding(bracketed, i, value, "item")


def _of_set(o: Any) -> Iterator[Holding]:
    for value in taken(set.__iter__ if _subclass(set, type(o)) else frozenset.__iter__, o):
        yield Holding(str, "{...}", value, "item")


def _of_partial(o: Any) -> Iterator[Holding]:
    for name in ("func", "args", "keywords"):
        yield Holding(dotted, name, functools.partial.__dict__[name].__get__(o), "closure")


CONTAINERS: tuple[type, ...] = (dict, list, tuple, set, frozenset, collections.deque, collections.UserDict)
_READERS = (_of_dict, _of_list, _of_tuple, _of_set, _of_set, _of_deque, _of_user_dict)
_CONTAINERS: tuple[tuple[type, Callable[[Any], Iterator[Holding]]], ...] = (
    *zip(CONTAINERS, _READERS, strict=True),
    (functools.partial, _of_partial),
)


def is_container(o: object) -> bool:
    """Whether `o` is a built-in container or of a class derived from one."""
    cls = type(o)
    if cls is list or cls is dict or cls is tuple:  # as most are
        return True
    return any(_subclass(base, cls) for base in CONTAINERS)


def size_of(o: Any) -> int:
    """The number of items of a container, or of an optimizer's states, whatever its class says; 0 for all else."""
    cls = type(o)
    if cls is list or cls is dict or cls is tuple:  # as most are
        return len(o)
    for base in CONTAINERS:
        if _subclass(base, cls):
            if base is not collections.UserDict:
                return base.__len__(o)  # type: ignore[attr-defined, no-any-return]
            o = attributes(o).get("data")
            return dict.__len__(o) if _subclass(dict, type(o)) else 0
    if cls is MappingProxyType:
        return max(map(size_of, gc.get_referents(o)), default=0)
    state: Any = attributes(o).get("state") if is_optimizer(o) else None
    return dict.__len__(state) if _subclass(dict, type(state)) else 0


def is_namespace(o: object) -> bool:
    """Whether `o` is the ``globals()`` of a program or module: nobody who keeps it owns all that it names."""
    return type(o) is dict and "__builtins__" in o


def field_names(cls: type) -> tuple[str, ...]:
    """The fields of a named tuple's class, or nothing."""
    if cls is tuple:
        return ()
    for space in class_dicts(cls):
        fields = space.get("_fields")
        if type(fields) is tuple and all(type(field) is str for field in fields):
            return fields
    return ()


def dotted(name: str) -> str:
    """A name behind an object: ``.weight``, ``[0]`` of a Sequential, ``['a b']``."""
    return f".{name}" if name.isidentifier() else f"[{name}]" if name.isdigit() else f"[{name!r}]"


def bracketed(key: object) -> str:
    """A key behind a container: ``['q']``, ``[0]``."""
    return f"[{_key_text(key)}]"


def _key_text(key: object) -> str:
    """A key as one would write it; "..." where that would take code of the user's."""
    kind = type(key)
    if kind is str or kind is bytes:
        short = key[:MOST_KEY]  # type: ignore[index]
        return repr(short) if len(short) == len(key) else repr(short)[:-1] + "…'"  # type: ignore[arg-type]
    if kind is int or kind is float or kind is bool or key is None:
        return repr(key)
    if kind is tuple:
        inner = ", ".join(_key_text(part) for part in key[:9])  # type: ignore[index]
        return f"({inner},)" if len(key) == 1 else f"({inner})"  # type: ignore[arg-type]
    return "..."


def plain_text(name: object) -> str:
    """A name as an exact `str`, without running a subclass's methods."""
    if type(name) is str:
        return name
    return str.__str__(name) if _subclass(str, type(name)) else "..."


def table_of(module: object, name: str) -> Iterable[tuple[str, Any]]:
    """The pairs of ``_parameters``, ``_buffers`` or ``_modules`` of a module, also of a ScriptModule."""
    table = attributes(module).get(name)
    if _subclass(dict, type(table)):
        return taken(dict.items, table)
    if not is_a(module, "script"):
        return ()
    inner = attributes(table)  # torch/jit/_script.py keeps the three in wrappers around C++ tables
    if name == "_modules":
        children = inner.get("_python_modules")
        return taken(dict.items, children) if _subclass(dict, type(children)) else ()
    native: Any = inner.get("_c")
    if is_a(native, "script parameters") or is_a(native, "script buffers"):
        return list(native.items())
    return ()


def _of_module(o: object, parts: ClassParts) -> Iterator[Holding]:
    write: Callable[[Any], str] = bracketed if class_name(type(o)) in _BY_KEY else dotted
    for table, via in _TABLES:
        for name, value in table_of(o, table):
            if value is not None:
                yield Holding(write, plain_text(name), value, via)
    for name, value in taken(dict.items, attributes(o)):
        text = plain_text(name)
        if text not in MODULE_INTERNALS and not text.startswith(COMPOSABLE):
            yield Holding(dotted, text, value, "attribute")
    yield from _of_class(o, parts)


def _of_optimizer(o: object) -> Iterator[Holding]:
    held = attributes(o)
    state = held.get("state")
    if _subclass(dict, type(state)):
        for key, value in taken(dict.items, state):
            name = "p" if is_tensor(key) else _key_text(key)
            yield Holding(_of_state, name, value, "state", key)
    for name, value in taken(dict.items, held):
        text = plain_text(name)
        if text != "state":
            yield Holding(dotted, text, value, "attribute")


def _of_state(name: str) -> str:
    return f".state[{name}]"


def _of_function(o: Any) -> Iterator[Holding]:
    if "__wrapped__" in o.__dict__:  # the shorter way to what a decorator has in its closure too
        yield Holding(dotted, "__wrapped__", o.__dict__["__wrapped__"], "closure")
    names = o.__code__.co_freevars
    for i, cell in enumerate(o.__closure__ or ()):
        yield from _of_cell(cell, f".__closure__[{i}].cell_contents", names[i] if i < len(names) else None)
    for i, value in enumerate(o.__defaults__ or ()):
        yield Holding(str, f".__defaults__[{i}]", value, "closure")
    for name, value in taken(dict.items, o.__kwdefaults__ or {}):
        yield Holding(str, f".__kwdefaults__[{name!r}]", value, "closure")
    for name, value in taken(dict.items, o.__dict__):
        yield Holding(dotted, plain_text(name), value, "attribute")


def _of_cell(cell: Any, path: str, variable: str | None) -> Iterator[Holding]:
    try:
        yield Holding(str, path, cell.cell_contents, "closure", variable)
    except ValueError:  # the variable is not bound yet
        return


def _of_object(o: object, parts: ClassParts) -> Iterator[Holding]:
    for name, value in taken(dict.items, attributes(o)):
        yield Holding(dotted, plain_text(name), value, "attribute")
    yield from _of_class(o, parts)


def _of_class(o: object, parts: ClassParts) -> Iterator[Holding]:
    cls = type(o)
    part = parts_of(cls, parts)[1]
    for name, descriptor in part.slots:
        try:
            value = descriptor.__get__(o, cls)
        except (AttributeError, TypeError):  # not set yet
            continue
        yield Holding(dotted, name, value, "attribute")
    if part.values:
        held = attributes(o)
        for name, value in part.values:
            if name not in held:
                yield Holding(dotted, name, value, "attribute")


def parts_of(cls: type, parts: ClassParts) -> tuple[type, ClassPart]:
    """The slots and class values of `cls`, from `parts` if they are known."""
    known = parts.get(id(cls))
    if known is None:
        spaces = [space for space in class_dicts(cls) if not _is_torchs(space)] if made_by_statement(cls) else []
        slots = [
            (name, value)
            for space in spaces
            for name, value in taken(_items, space)
            if type(value) is MemberDescriptorType and type(name) is str and not name.startswith("__")
        ]
        known = parts[id(cls)] = (cls, ClassPart(tuple(slots), tuple(class_values(spaces))))
    return known


def _is_torchs(space: Mapping[str, Any]) -> bool:
    """Whether a class body is PyTorch's own: long, and without tensors."""
    home = space.get("__module__")
    return type(home) is str and home.startswith(("torch.nn.modules.", "torch.optim."))


def _items(space: Mapping[str, Any]) -> Iterable[tuple[str, Any]]:
    return space.items()


def class_values(spaces: Iterable[Mapping[str, Any]]) -> Iterator[tuple[str, Any]]:
    """Tensors, modules and containers that stand in class bodies, the nearest of each name."""
    seen: set[str] = set()
    for space in spaces:
        for name, value in taken(_items, space):
            kind = type(value)
            if type(name) is not str or name.startswith("__") or name in seen:
                continue
            seen.add(name)
            if kind is dict or kind is list or kind is tuple or is_tensor(value) or is_module(value):
                yield name, value
