"""The value, or at least the device, of an expression of the user's, without running their code.

Attributes are read from ``__dict__``, ``_parameters``, ``_buffers`` and ``_modules`` and
items from built-in containers, through the built-in types' own methods.  Whatever would
call user code (a property, ``__getattr__``, an operator) is not evaluated: the answer is
`MISSING`, and `device` may still infer where the result must be from how it is made.
"""

from __future__ import annotations

import ast
import builtins
import sys
import types
from collections import OrderedDict
from collections.abc import Mapping
from typing import Any, Final

from ipydevice import placement
from ipydevice.placement.kinds import attributes, torch_class


class _Missing:
    def __repr__(self) -> str:
        return "MISSING"


MISSING: Final = _Missing()

# Functions of torch that make a tensor from nothing: on the default device unless told otherwise.
FACTORIES: Final = frozenset(
    "arange as_tensor asarray bartlett_window blackman_window complex empty empty_strided eye from_file from_numpy "
    "frombuffer full hamming_window hann_window kaiser_window linspace logspace normal ones rand randint randn "
    "randperm range scalar_tensor sparse_coo_tensor sparse_csr_tensor tensor tril_indices triu_indices zeros "
    "Tensor FloatTensor LongTensor DoubleTensor IntTensor BoolTensor".split()
)
LIKES: Final = frozenset(
    "empty_like full_like ones_like rand_like randint_like randn_like zeros_like "
    "new_empty new_full new_ones new_tensor new_zeros".split()
)
# Methods whose result is not a tensor.
_NUMBERS: Final = frozenset("item tolist numpy size dim numel stride data_ptr nelement ndimension get_device".split())
# Methods (and functions) whose result is the same storage or a reshaped copy of the same values.
VIEWS: Final = frozenset(
    "unsqueeze squeeze view reshape flatten expand expand_as permute transpose t contiguous detach narrow select "
    "index_select repeat repeat_interleave chunk split unbind movedim swapaxes swapdims diagonal unflatten view_as "
    "reshape_as float double half bfloat16 long int bool type clone requires_grad_ T mT H mH data real imag".split()
)


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
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as number)):
            return -number
        case _:
            return MISSING


def attribute(obj: Any, name: str) -> Any:
    """`obj.name` where this runs no code of the user's."""
    if isinstance(obj, types.ModuleType):  # exact reading: a lazy module's __getattr__ would import
        return types.ModuleType.__getattribute__(obj, "__dict__").get(name, MISSING)
    if placement.is_tensor(obj):
        return _tensor_attribute(obj, name)
    own = attributes(obj)
    if name in own:
        return own[name]
    for table in ("_parameters", "_buffers", "_modules"):
        held = own.get(table)
        if type(held) in _DICTS and name in held:
            return held[name]
    return _class_attribute(obj, name)


_DICTS: Final = (dict, OrderedDict)


def _tensor_attribute(obj: Any, name: str) -> Any:
    own = attributes(obj)
    if name in own:
        return own[name]
    torch = sys.modules["torch"]
    if name in ("grad", "data") and type(obj) in (torch.Tensor, torch.nn.Parameter):
        found = getattr(obj, name) if name == "data" or obj.is_leaf else None
        return MISSING if found is None else found
    return MISSING


def _class_attribute(obj: Any, name: str) -> Any:
    for cls in type(obj).__mro__:
        if name not in cls.__dict__:
            continue
        found = cls.__dict__[name]
        if isinstance(found, types.MemberDescriptorType):  # __slots__
            try:
                return found.__get__(obj, cls)
            except AttributeError:
                return MISSING
        if isinstance(found, types.FunctionType):
            return types.MethodType(found, obj)
        if isinstance(found, staticmethod):
            return found.__func__
        if isinstance(found, (classmethod, property)) or hasattr(type(found), "__get__"):
            return MISSING  # reading it would run code
        return found
    return MISSING


_PLAIN_KEYS: Final = (str, int, bool, float, type(None), bytes)


def item(obj: Any, key: Any) -> Any:
    """`obj[key]` for built-in containers and torch's module and parameter containers."""
    if not (type(key) in _PLAIN_KEYS or placement.is_tensor(key) or _is_plain_tuple(key)):
        return MISSING
    kinds = type(obj).__mro__
    if dict in kinds:
        return dict.get(obj, key, MISSING) if not placement.is_tensor(key) else _by_identity(obj, key)
    if list in kinds or tuple in kinds:
        base: Any = list if list in kinds else tuple
        if type(key) is int and -base.__len__(obj) <= key < base.__len__(obj):
            return base.__getitem__(obj, key)
        return MISSING
    own = attributes(obj)
    if placement.is_module(obj):
        for table in ("_modules", "_parameters", "_buffers"):
            held = own.get(table)
            if type(held) not in _DICTS or not held:
                continue
            if type(key) is int:
                names = list(held)
                if names == [str(i) for i in range(len(names))] and -len(names) <= key < len(names):
                    return held[names[key]]
            elif type(key) is str and key in held:
                return held[key]
        return MISSING
    inner = own.get("data")  # UserDict, and BatchEncoding and its like after it
    if type(inner) in _DICTS and type(key) is str:
        return inner.get(key, MISSING)
    return MISSING


def _by_identity(table: dict[Any, Any], key: Any) -> Any:
    for held, found in dict.items(table):
        if held is key:
            return found
    return MISSING


def _is_plain_tuple(key: Any) -> bool:
    return type(key) is tuple and all(type(part) in _PLAIN_KEYS for part in key)


def device_name(obj: Any) -> str | None:
    """The device that an argument such as ``"cuda:0"``, ``torch.device("cpu")`` or ``0`` names."""
    if type(obj) is str:
        return obj if obj.split(":")[0].isidentifier() else None
    torch = sys.modules.get("torch")
    if torch is not None and type(obj) is torch.device:
        return str(obj)
    if type(obj) is int and torch is not None:
        return f"{accelerator()}:{obj}"
    return None


def accelerator() -> str:
    """The type of this machine's accelerator; "cuda" where there is none to ask."""
    torch = sys.modules.get("torch")
    try:
        found = torch.accelerator.current_accelerator()  # type: ignore[union-attr]  # since torch 2.6
        return "cuda" if found is None else str(found.type)
    except Exception:
        return "cuda"


def with_index(device: str, known: tuple[str, ...] = ()) -> str:
    """"cuda" -> "cuda:0", or the one card of `known` of that type."""
    if ":" in device or device in ("cpu", "meta"):
        return device
    same_type = [name for name in known if name.split(":")[0] == device and ":" in name]
    return same_type[0] if len(same_type) == 1 else f"{device}:0"


def default_device() -> str:
    """Where a factory without ``device=`` puts its result."""
    torch = sys.modules.get("torch")
    try:
        return with_index(str(torch.get_default_device()))  # type: ignore[union-attr]
    except Exception:
        return "cpu"


def device(node: ast.AST | None, scope: Scope) -> str | None:
    """Where the value of `node` is, by its value or else by how it is made; None when not known."""
    live = value(node, scope)
    if live is not MISSING:
        if placement.is_tensor(live):
            return placement.device_of(live)
        if type(live) in (list, tuple, dict) or placement.is_module(live):
            held = placement.devices_of(live)
            return held[0] if len(held) == 1 else None
        return None
    match node:
        case ast.Call():
            return _call_device(node, scope)
        case ast.BinOp():
            return _join(device(node.left, scope), device(node.right, scope))
        case ast.UnaryOp():
            return device(node.operand, scope)
        case ast.Compare():
            return _join(device(node.left, scope), *(device(part, scope) for part in node.comparators))
        case ast.Subscript():
            return device(node.value, scope)
        case ast.Attribute(attr=name) if name in VIEWS:
            return device(node.value, scope)
        case ast.IfExp():
            here, there = device(node.body, scope), device(node.orelse, scope)
            return here if here == there else None
        case ast.Starred():
            return device(node.value, scope)
        case ast.Tuple() | ast.List():
            found = {device(part, scope) for part in node.elts}
            return found.pop() if len(found) == 1 else None
        case ast.ListComp() | ast.GeneratorExp():
            return device(node.elt, scope)
        case _:
            return None


def _join(*found: str | None) -> str | None:
    """Of an operator's operands: one device, or the accelerator's where the host has numbers only."""
    known = {name for name in found if name is not None}
    return known.pop() if len(known) == 1 else None


def call_name(node: ast.Call, scope: Scope) -> str:
    """The torch name of what is called: "zeros", "cat", "cross_entropy"; "" when it is not torch's."""
    target = value(node.func, scope)
    last = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    if target is MISSING:
        root = node.func
        while isinstance(root, ast.Attribute):
            root = root.value
        return last if isinstance(root, ast.Name) and root.id in ("torch", "F", "th") else ""
    owner = getattr(target, "__module__", None) if isinstance(target, _FUNCTIONS) else None
    if isinstance(target, type):
        return last if target.__module__.split(".")[0] == "torch" else ""
    if owner is not None and owner.split(".")[0] in ("torch", "ipydevice"):
        return last
    # builtins such as torch.cat have no __module__: they belong to torch when torch holds them by that name
    torch = sys.modules.get("torch")
    if torch is None or not isinstance(target, _FUNCTIONS):
        return ""
    name = getattr(target, "__name__", "")
    for holder in (torch, torch.nn.functional, torch._C._nn, torch.special, torch.linalg, torch.fft):
        if types.ModuleType.__getattribute__(holder, "__dict__").get(name) is target:
            return str(name)
    return ""


_FUNCTIONS: Final = (types.FunctionType, types.BuiltinFunctionType, types.MethodType)


def keyword(node: ast.Call, name: str) -> ast.expr | None:
    """The value given for keyword argument `name`."""
    return next((kw.value for kw in node.keywords if kw.arg == name), None)


def _call_device(node: ast.Call, scope: Scope) -> str | None:
    name = call_name(node, scope)
    if name in FACTORIES:
        return _factory_device(node, name, scope)
    if isinstance(node.func, ast.Attribute) and not name:
        method = node.func.attr
        receiver = value(node.func.value, scope)
        if placement.is_module(receiver) and method != "forward":
            return None
        here = device(node.func.value, scope)
        moved = moved_to(node, scope)
        if moved is not None:
            return moved
        if here is not None and method not in _NUMBERS and not placement.is_module(receiver):
            explicit = keyword(node, "device")
            return with_index(device_name(value(explicit, scope)) or here) if explicit is not None else here
        if here is None:
            return None
    target = value(node.func, scope)
    if placement.is_module(target):
        held = placement.devices_of(target)
        return held[0] if len(held) == 1 else None
    if isinstance(target, type) and torch_class("module") in type.mro(target):
        explicit = keyword(node, "device")
        return with_index(device_name(value(explicit, scope)) or "") if explicit is not None else default_device()
    if name in LIKES or name:
        explicit = keyword(node, "device")
        if explicit is not None:
            named = device_name(value(explicit, scope))
            return None if named is None else with_index(named)
        return _join(*(device(arg, scope) for arg in node.args))
    return None


def _factory_device(node: ast.Call, name: str, scope: Scope) -> str | None:
    explicit = keyword(node, "device")
    if explicit is not None:
        named = device_name(value(explicit, scope))
        return device(explicit.value, scope) if named is None and _is_device_of(explicit) else named and with_index(named)
    if name in ("as_tensor", "asarray") and node.args:
        return device(node.args[0], scope) or default_device()
    if name in ("from_numpy", "frombuffer", "from_file"):
        return "cpu"
    return default_device()


def _is_device_of(node: ast.expr) -> bool:
    return isinstance(node, ast.Attribute) and node.attr == "device"


def moved_to(node: ast.Call, scope: Scope) -> str | None:
    """The device that ``x.to(...)``, ``x.cuda()`` or ``x.cpu()`` moves to; None when it moves nothing."""
    if not isinstance(node.func, ast.Attribute):
        return None
    match node.func.attr:
        case "cpu":
            return "cpu"
        case "cuda" | "xpu" | "hpu" | "npu" as kind:
            index = value(node.args[0], scope) if node.args else None
            return f"{kind}:{index}" if type(index) is int else with_index(kind)
        case "to" | "to_empty":
            given = keyword(node, "device") or (node.args[0] if node.args else None)
            if given is None:
                return None
            live = value(given, scope)
            if placement.is_tensor(live):
                return placement.device_of(live)
            named = device_name(live)
            if named is not None:
                return with_index(named)
            if isinstance(given, ast.Attribute) and given.attr == "device":
                return device(given.value, scope)
    return None
