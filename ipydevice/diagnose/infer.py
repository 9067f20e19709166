"""Where the result of an expression must be, inferred from how it is made.

For what has no value to look at: ``torch.zeros(3)`` is on the default device,
``model(x)`` where the model's parameters are, ``x.to(device)`` where it says.
"""

from __future__ import annotations

import ast
import sys
import types
from collections.abc import Iterator
from typing import Any, Final

from ipydevice import placement
from ipydevice.diagnose.evaluate import MISSING, Scope, is_exactly, is_of, value
from ipydevice.placement.kinds import class_dicts, class_name, torch_class

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


# Of them the properties: `x.t` without brackets is somebody's attribute of that name.
SHOWN: Final = frozenset("T mT H mH data real imag".split())


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
    except (AttributeError, RuntimeError):
        return "cuda"


def with_index(device: str, known: tuple[str, ...] = ()) -> str:
    """ "cuda" -> "cuda:0", or the one card of `known` of that type."""
    if ":" in device or device in ("cpu", "meta"):
        return device
    same_type = [name for name in known if name.split(":")[0] == device and ":" in name]
    return same_type[0] if len(same_type) == 1 else f"{device}:0"


def default_device() -> str:
    """Where a factory without ``device=`` puts its result."""
    torch = sys.modules.get("torch")
    try:
        return with_index(str(torch.get_default_device()))  # type: ignore[union-attr]
    except (AttributeError, RuntimeError):
        return "cpu"


def device(node: ast.AST | None, scope: Scope) -> str | None:
    """Where the value of `node` is, by its value or else by how it is made; None when not known."""
    live = value(node, scope)
    if live is not MISSING:
        if placement.is_tensor(live):
            return placement.device_of(live)
        if is_exactly(live, list, tuple, dict) or placement.is_module(live):
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
        case ast.Attribute(attr=name) if name in SHOWN:
            owner = value(node.value, scope)
            return device(node.value, scope) if owner is MISSING or placement.is_tensor(owner) else None
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
    if is_of(target, type):
        return last if home_of_class(target) == "torch" else ""
    owner = getattr(target, "__module__", None) if is_exactly(target, *_FUNCTIONS) else None
    if type(owner) is str and owner.split(".")[0] in ("torch", "ipydevice"):
        return last
    # builtins such as torch.cat have no __module__: they belong to torch when torch holds them by that name
    torch = sys.modules.get("torch")
    if torch is None or not is_exactly(target, *_FUNCTIONS):
        return ""
    name = getattr(target, "__name__", "")
    for holder in (torch, torch.nn.functional, torch._C._nn, torch.special, torch.linalg, torch.fft):
        if types.ModuleType.__getattribute__(holder, "__dict__").get(name) is target:
            return str(name)
    return ""


def home_of_class(cls: type) -> str:
    """The top-level package in which a class was made: "torch", "__main__"."""
    module = class_dicts(cls)[0].get("__module__")
    return module.partition(".")[0] if type(module) is str else "builtins"


def _is_module_class(target: Any) -> bool:
    module = torch_class("module")
    return module is not None and is_of(target, type) and type.__subclasscheck__(module, target)


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
    if _is_module_class(target):
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
        if named is None and isinstance(explicit, ast.Attribute) and explicit.attr == "device":
            return device(explicit.value, scope)
        return named and with_index(named)
    if name in ("as_tensor", "asarray") and node.args:
        return device(node.args[0], scope) or default_device()
    if name in ("from_numpy", "frombuffer", "from_file"):
        return "cpu"
    return default_device()


def on_the_way(expr: ast.expr) -> Iterator[ast.Call]:
    """The calls that a value itself went through: not ``n.cpu()`` in ``pack(x, n.cpu())``."""
    beside = {
        inner
        for call in ast.walk(expr)
        if isinstance(call, ast.Call)
        for other in (*call.args[1:], *(kw.value for kw in call.keywords))
        for inner in ast.walk(other)
    }
    yield from (node for node in ast.walk(expr) if isinstance(node, ast.Call) and node not in beside)


def is_conversion(node: ast.Call, scope: Scope) -> bool:
    """Whether ``x.to(...)`` changes the type alone: ``x.to(torch.float16)``, ``x.to(other.dtype)``, ``x.to(dtype)``."""
    given = [*node.args, *(kw.value for kw in node.keywords if kw.arg not in ("non_blocking", "copy"))]
    if keyword(node, "device") is not None or len(given) != 1:
        return False
    live = value(given[0], scope)
    if live is not MISSING:
        return class_name(type(live)) == "dtype"
    last = given[0].attr if isinstance(given[0], ast.Attribute) else getattr(given[0], "id", "")
    return "dtype" in last


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


def is_passive(node: ast.Call, scope: Scope) -> bool:
    """Whether the call is one of torch's functions, whose result is where its arguments are."""
    return call_name(node, scope) not in ("", "load")


def builds_module(node: ast.Call, scope: Scope) -> bool:
    """``nn.GroupNorm(2, c)``: made here, whatever its arguments are."""
    cls, module = value(node.func, scope), placement.torch_class("module")
    return module is not None and is_of(cls, type) and type.__subclasscheck__(module, cls)
