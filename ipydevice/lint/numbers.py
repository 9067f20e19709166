"""Tensors that may be on the host whatever they meet: of no dimension, or used as numbers and indices only."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from ipydevice.diagnose import bindings

if TYPE_CHECKING:
    from ipydevice.lint.names import Names, Scope

_SIZED = ("zeros", "ones", "empty", "rand", "randn", "full")
_NUMBERS = frozenset("float int bool round len range print str repr format isinstance min max".split())
_ASKED = frozenset("item tolist numpy shape size numel dim ndim dtype device is_cuda".split())
_DEEPEST = 3  # names that a value goes through


def has_no_dimension(names: Names, node: ast.Call) -> bool:
    """``torch.tensor(0.5)``, ``torch.rand(())``: a host tensor of no dimension may meet those of any device."""
    name = names.called(node).rpartition(".")[2]
    first = node.args[0] if node.args else None
    if name in ("tensor", "Tensor"):
        return first is not None and not isinstance(first, (ast.List, ast.Tuple, ast.ListComp))
    size = next((keyword.value for keyword in node.keywords if keyword.arg == "size"), None)
    if size is None and name in _SIZED:
        size = first
    elif size is None and name == "randint" and len(node.args) > 1:
        size = node.args[-1]
    return size is not None and _is_empty(names, size)


def _is_empty(names: Names, size: ast.expr) -> bool:
    match size:
        case ast.Tuple(elts=[]) | ast.List(elts=[]):
            return True
        case ast.Call(args=args, keywords=[]) if names.called(size) == "torch.Size":
            return not args or _is_empty(names, args[0])
    return False


def becomes_number(names: Names, scope: Scope, node: ast.expr, depth: int = 0) -> bool:
    """Whether a value ends in nothing but numbers and indices: ``p = torch.rand(1)`` in ``if p < self.drop``."""
    child: ast.AST = node
    for up in names.source.ancestors(node):
        match up:
            case ast.Attribute(attr=name):
                if name in _ASKED:
                    return True
            case ast.Call(func=func) if func is not child:
                return _takes_numbers(names, func)
            case ast.UnaryOp(op=ast.Not()) | ast.FormattedValue() | ast.Slice():
                return True
            case ast.BinOp() | ast.Compare():
                if _meets_input(scope, up, child):
                    return False
            case ast.If(test=test) | ast.While(test=test) | ast.Assert(test=test) | ast.IfExp(test=test) if (
                test is child
            ):
                return True
            case ast.comprehension(ifs=tests):
                return child in tests
            case ast.Subscript(slice=index) if index is child:
                return True  # the host's indices are taken everywhere
            case ast.Tuple():
                if not isinstance(names.source.parent(up), ast.Subscript):
                    return False
            case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
                return depth < _DEEPEST and _uses_are_numbers(names, scope, name, depth)
            case ast.Call() | ast.BoolOp() | ast.UnaryOp() | ast.IfExp() | ast.Subscript() | ast.keyword():
                pass
            case _:
                return False
        child = up
    return False


def _takes_numbers(names: Names, func: ast.expr) -> bool:
    return names.full(func).startswith("math.") or (isinstance(func, ast.Name) and func.id in _NUMBERS)


def _uses_are_numbers(names: Names, scope: Scope, name: str, depth: int) -> bool:
    uses = [n for n in ast.walk(scope) if isinstance(n, ast.Name) and n.id == name and isinstance(n.ctx, ast.Load)]
    return bool(uses) and all(becomes_number(names, scope, use, depth + 1) for use in uses)


def _meets_input(scope: Scope, up: ast.AST, child: ast.AST) -> bool:
    """Whether what stands beside speaks of an argument of the function, which may be a tensor on any device."""
    if isinstance(scope, ast.Module):
        return False
    inputs = {name for name in bindings.parameters(scope) if name not in ("self", "cls")}
    return any(
        isinstance(part, ast.Name) and part.id in inputs
        for side in ast.iter_child_nodes(up)
        if side is not child
        for part in ast.walk(side)
    )
