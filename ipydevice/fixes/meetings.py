"""What a value meets where it is used, told from the text alone: the tensor beside it, whose device it needs."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ipydevice.diagnose import bindings
from ipydevice.diagnose.finding import Site
from ipydevice.diagnose.source import Source
from ipydevice.fixes.context import Context
from ipydevice.fixes.names import last_name, parameters, root
from ipydevice.fixes.operands import is_operand

# Of a tensor's methods those whose arguments are sizes and kinds, no tensors.
_SIZES = frozenset(
    "expand view reshape repeat permute transpose unsqueeze squeeze flatten unflatten to type float half double long "
    "int bool chunk split narrow roll repeat_interleave size stride sum mean std var norm max min argmax argmin "
    "softmax log_softmax cumsum sort topk".split()
)
_NOT_A_VALUE = ("shape", "dtype", "device", "size", "dim", "ndim", "numel", "is_cuda", "requires_grad")
_COUNTS = ("len", "range", "int", "float", "bool", "str", "round", "size", "numel", "dim", "item", "enumerate", "id")


def device_met(ctx: Context, source: Source, use: ast.expr) -> str | None:
    """``att.device`` for the `bias` of ``att + bias``; None where nothing beside it is known to be a tensor."""
    below: ast.AST = use
    for up in source.ancestors(use):
        if isinstance(up, (ast.stmt, ast.Lambda, ast.comprehension)):
            return None
        for other in _beside(up, below):
            for name in _tensors_in(ctx, source, other):
                return f"{name}.device"
        below = up
    return None


def would_be_stray(ctx: Context, site: Site, body: list[ast.stmt], name: str) -> bool:
    """Where nothing lives: whether a name is where the stray is, meets others in `body`, and none that is there too."""
    read, stray, met = ctx.finding.read, ctx.stray, False
    if read is None or stray is None:
        return False
    for statement in body:
        for node in ast.walk(statement):
            if not (isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Load)):
                continue
            if any(read(Site(site.source, other)) == stray.device for other in _all_beside(site.source, node)):
                return False
            met = met or (ctx.is_stray(Site(site.source, node, site.frame)) and is_operand(ctx, site, node))
    return met


def _all_beside(source: Source, use: ast.expr) -> Iterator[ast.expr]:
    """What stands beside a use in its own call or operator."""
    below: ast.AST = use
    for up in source.ancestors(use):
        if isinstance(up, ast.stmt):
            return
        found = [part for part in _beside(up, below) if not isinstance(part, ast.Constant)]
        if found:
            yield from found
            return
        below = up


def some_input(ctx: Context, source: Source, node: ast.AST) -> str | None:
    """The device of a parameter of the function around, where the text uses one as a tensor."""
    function = source.function(node)
    if not isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef)):
        return None
    own = ctx.work.self_name(Site(source, node))
    for name in parameters(function):
        if name != own and not _is_no_tensor(source, function, name) and _is_used_as_tensor(source, function, name):
            return f"{name}.device"
    return None


def only_asked(source: Source, node: ast.AST) -> bool:
    """``x.shape``, ``len(x)``, ``x is None``, ``n in x``, ``x[n] = y``: what it is, not what it holds."""
    up = source.parent(node)
    match up:
        case ast.Attribute(attr=attr):
            return attr in _NOT_A_VALUE
        case ast.Call(func=ast.Name(id=called)):
            return called in ("len", "type", "isinstance", "id") and node in up.args
        case ast.Compare(ops=[ast.Is() | ast.IsNot() | ast.In() | ast.NotIn()]):
            return True
        case ast.Subscript(ctx=ast.Store() | ast.Del()):
            return True
    return False


def _beside(up: ast.AST, below: ast.AST) -> list[ast.expr]:
    """The other operands of an operator or call."""
    match up:
        case ast.BinOp(left=left, right=right):
            return [left if below is right else right]
        case ast.Compare(left=left, comparators=rest):
            return [part for part in (left, *rest) if part is not below]
        case ast.List(elts=parts) | ast.Tuple(elts=parts):
            return [part for part in parts if part is not below]
        case ast.Call(func=func, args=args, keywords=keywords):
            if func is below:
                return [] if last_name(func) in _SIZES else [*args, *(k.value for k in keywords)]
            receiver = [func.value] if isinstance(func, ast.Attribute) else []
            given = [part for part in args if part is not below]
            return [*receiver, *given, *(k.value for k in keywords if k is not below)]
        case ast.IfExp() | ast.Subscript():
            return []
    return []


def _tensors_in(ctx: Context, source: Source, other: ast.expr) -> Iterator[str]:
    """Names in an expression that stand for tensors of the function around, as far as its text tells."""
    function = source.function(other)
    if function is None:
        return
    own = ctx.work.self_name(Site(source, other))
    for node in _in_order(other):
        if not isinstance(node, ast.Name) or node.id == own or not isinstance(node.ctx, ast.Load):
            continue
        if not _is_local(function, node.id) or _is_no_tensor(source, function, node.id):
            continue
        up = source.parent(node)
        called = isinstance(up, ast.Call) and up.func is node
        index = isinstance(up, ast.Subscript) and up.slice is node
        if not called and not index and not only_asked(source, node):
            yield node.id


def _in_order(node: ast.AST) -> Iterator[ast.AST]:
    """The nodes in the order in which they stand, without what says sizes: ``x`` of ``x.view(n, k)``."""
    yield node
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _SIZES:
        yield from _in_order(node.func)
    elif isinstance(node, ast.Subscript):
        yield from _in_order(node.value)
    elif not isinstance(node, ast.Lambda):
        for child in ast.iter_child_nodes(node):
            yield from _in_order(child)


def _is_local(function: ast.AST, name: str) -> bool:
    stored = (n.id for n in ast.walk(function) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store))
    return name in parameters(function) or name in stored


def _is_no_tensor(source: Source, function: ast.AST, name: str) -> bool:
    """Is the name somewhere bound to, or used as, a number, a text, a module or a list?"""
    if _default_says(function, name):
        return True
    for binding in bindings.of_name(function, name):
        if _gives_no_tensor(binding):
            return True
    for node in ast.walk(function):
        if isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Load):
            match source.parent(node):
                case ast.Call(func=ast.Name(id="range")):
                    return True
                case ast.Call(func=func) if func is node:
                    return True
                case ast.Call(func=ast.Attribute(attr=attr)) if attr in ("arange", "zeros", "ones", *_SIZES):
                    return True
                case ast.Attribute(attr="append" | "items" | "keys" | "values" | "parameters" | "weight"):
                    return True
                case ast.Subscript(value=held, slice=index) if index is node and root(held) != name:
                    if not isinstance(held, ast.Name):
                        return True  # a key: of something that an object keeps
                case ast.Slice() | ast.FormattedValue():
                    return True
    return False


def _gives_no_tensor(binding: bindings.Binding) -> bool:
    value = binding.value
    if isinstance(binding.node, ast.AugAssign):
        return False
    match value:
        case ast.Constant() | ast.JoinedStr() | ast.Dict() | ast.List() | ast.ListComp() | ast.DictComp():
            return True
        case ast.Attribute(attr="shape") | ast.Subscript(value=ast.Attribute(attr="shape")):
            return True
        case ast.Call(func=func) if last_name(func) in _COUNTS:
            return last_name(func) != "enumerate" or binding.part == 0
        case ast.Call(func=ast.Attribute(attr="items")):
            return binding.part == 0
        case ast.BinOp(left=left, right=right):
            sides = [bindings.Binding(binding.node, binding.how, side) for side in (left, right)]
            return all(_gives_no_tensor(side) for side in sides)
    return False


def _default_says(function: ast.AST, name: str) -> bool:
    """``n=4``, ``mode="sum"``, ``n: int`` in the head of the function."""
    if not isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
        return False
    arguments = (*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs)
    kinds = {ast.unparse(a.annotation) for a in arguments if a.arg == name and a.annotation is not None}
    return bool(kinds & {"int", "float", "str", "bool"}) or isinstance(
        bindings.default_of(function, name), ast.Constant
    )


def _is_used_as_tensor(source: Source, function: ast.AST, name: str) -> bool:
    """Is it computed with, asked for its shape, or handed to something that `self` holds?"""
    for node in ast.walk(function):
        if isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Load):
            match source.parent(node):
                case ast.BinOp() | ast.Attribute(attr="shape" | "size" | "device" | "dtype"):
                    return True
                case ast.Attribute() as up if isinstance(source.parent(up), ast.Call):
                    return True
                case ast.Call(func=func) if func is not node:
                    return True
    return False
