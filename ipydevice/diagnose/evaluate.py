"""The value of an expression of the user's, without running their code.

Attributes are read from ``__dict__``, ``_parameters``, ``_buffers`` and ``_modules`` and
items from built-in containers, through the built-in types' own methods.  Whatever would
call user code (a property, ``__getattr__``, an operator) is not evaluated: the answer is
`MISSING`.  Nor is a class asked by ``isinstance`` or ``type(o) in (...)``: the one runs a
``__class__`` property, the other ``__eq__`` of a metaclass.
"""

from __future__ import annotations

import ast
import builtins
import collections
import functools
import sys
import types
from collections import OrderedDict
from collections.abc import Mapping
from typing import Any, Final

from ipydevice import placement
from ipydevice.placement.kinds import attributes, class_dicts


class _Missing:
    def __repr__(self) -> str:
        return "MISSING"


MISSING: Final = _Missing()


def is_of(obj: object, *classes: type) -> bool:
    """Whether the object's real class derives from one of these."""
    return any(type.__subclasscheck__(cls, type(obj)) for cls in classes)


def is_exactly(obj: object, *classes: type) -> bool:
    """Whether the object's real class is one of these."""
    return any(type(obj) is cls for cls in classes)


class Scope:
    """The names that a piece of code sees: a live frame's, or the workspace's."""

    def __init__(self, names: Mapping[str, Any], outer: Mapping[str, Any]) -> None:
        self.names = names
        self.outer = outer

    @classmethod
    def of_frame(cls, frame: types.FrameType) -> Scope:
        return cls(frame.f_locals, frame.f_globals)

    @classmethod
    def of_namespace(cls, namespace: Mapping[str, Any]) -> Scope:
        return cls(namespace, namespace)

    def lookup(self, name: str) -> Any:
        if name in self.names:
            return self.names[name]
        if name in self.outer:
            return self.outer[name]
        return builtins.__dict__.get(name, MISSING)


def value(node: ast.AST | None, scope: Scope) -> Any:
    """The live object that `node` denotes in `scope`, or `MISSING`."""
    match node:
        case ast.Constant():
            return node.value
        case ast.Name():
            return scope.lookup(node.id)
        case ast.NamedExpr():
            return value(node.target, scope)
        case ast.Attribute():
            base = value(node.value, scope)
            return MISSING if base is MISSING else attribute(base, node.attr)
        case ast.Subscript():
            base = value(node.value, scope)
            if base is MISSING:
                return MISSING
            key = value(node.slice, scope)
            return MISSING if key is MISSING else item(base, key)
        case ast.Tuple() | ast.List():
            parts = [value(part, scope) for part in node.elts]
            if any(part is MISSING for part in parts):
                return MISSING
            return tuple(parts) if isinstance(node, ast.Tuple) else parts
        case ast.Call(func=ast.Attribute(value=base_node, attr="values"), args=[], keywords=[]):
            base = value(base_node, scope)
            return list(dict.values(base)) if is_exactly(base, *_DICTS) else MISSING
        case ast.Call(func=ast.Name(id="list" | "tuple"), args=[inner], keywords=[]):
            held = value(inner, scope)
            return list(held) if is_exactly(held, list, tuple) else MISSING
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as number)):
            return -number
        case _:
            return MISSING


def attribute(obj: Any, name: str) -> Any:
    """`obj.name` where this runs no code of the user's."""
    if is_of(obj, types.ModuleType):  # exact reading: a lazy module's __getattr__ would import
        return types.ModuleType.__getattribute__(obj, "__dict__").get(name, MISSING)
    if placement.is_tensor(obj):
        return _tensor_attribute(obj, name)
    if is_of(obj, type):  # what its metaclass may add is not looked for
        return _found_in(class_dicts(obj), None, name)
    own = attributes(obj)
    if name in own:
        return own[name]
    for table in ("_parameters", "_buffers", "_modules"):
        held: Any = own.get(table)
        if is_exactly(held, *_DICTS) and name in held:
            return held[name]
    return _found_in(class_dicts(type(obj)), obj, name)


_DICTS: Final = (dict, OrderedDict)
_tuplegetter: Final[type] = type(vars(collections.namedtuple("_", "field"))["field"])  # of C, it reads an item


def _tensor_attribute(obj: Any, name: str) -> Any:
    own = attributes(obj)
    if name in own:
        return own[name]
    torch = sys.modules["torch"]
    if name in ("grad", "data") and is_exactly(obj, torch.Tensor, torch.nn.Parameter):
        found = getattr(obj, name) if name == "data" or obj.is_leaf else None
        return MISSING if found is None else found
    return MISSING


def _found_in(spaces: list[Mapping[str, Any]], obj: Any, name: str) -> Any:
    """The attribute that the namespaces of a class and its bases give an instance, or with None the class itself."""
    for space in spaces:
        if name not in space:
            continue
        found = space[name]
        if obj is None and is_exactly(found, *_METHODS):
            return found
        if obj is not None and is_exactly(
            found, types.MemberDescriptorType, _tuplegetter
        ):  # __slots__, a named tuple's field
            try:
                return found.__get__(obj)
            except AttributeError:
                return MISSING
        if is_exactly(found, *_METHODS):
            return types.MethodType(found, obj)
        if is_exactly(found, staticmethod):
            return found.__func__
        if any("__get__" in of_class for of_class in class_dicts(type(found))):
            return MISSING  # a property or the like: reading it would run code
        return found
    return MISSING


_METHODS: Final = (types.FunctionType, type(functools.lru_cache(len)))  # what binds to an instance

_PLAIN_KEYS: Final = (str, int, bool, float, type(None), bytes)


def item(obj: Any, key: Any) -> Any:
    """`obj[key]` for built-in containers and torch's module and parameter containers."""
    if not (is_exactly(key, *_PLAIN_KEYS) or placement.is_tensor(key) or _is_plain_tuple(key)):
        return MISSING
    if is_of(obj, dict):
        return dict.get(obj, key, MISSING) if not placement.is_tensor(key) else _by_identity(obj, key)
    if is_of(obj, list, tuple):
        base: Any = list if is_of(obj, list) else tuple
        if type(key) is int and -base.__len__(obj) <= key < base.__len__(obj):
            return base.__getitem__(obj, key)
        return MISSING
    own = attributes(obj)
    if placement.is_module(obj):
        for table in ("_modules", "_parameters", "_buffers"):
            held = own.get(table)
            if not is_exactly(held, *_DICTS) or not held:
                continue
            if type(key) is int:
                names = list(held)
                if names == [str(i) for i in range(len(names))] and -len(names) <= key < len(names):
                    return held[names[key]]
            elif type(key) is str and key in held:
                return held[key]
        return MISSING
    inner: Any = own.get("data")  # UserDict, and BatchEncoding and its like after it
    if is_exactly(inner, *_DICTS) and type(key) is str:
        return inner.get(key, MISSING)
    return MISSING


def _by_identity(table: dict[Any, Any], key: Any) -> Any:
    for held, found in dict.items(table):
        if held is key:
            return found
    return MISSING


def _is_plain_tuple(key: Any) -> bool:
    return type(key) is tuple and all(is_exactly(part, *_PLAIN_KEYS) for part in key)
