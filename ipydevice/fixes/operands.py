"""Where a value meets others, and where only the host will do: told from the code around it."""

from __future__ import annotations

import ast

from ipydevice import placement
from ipydevice.diagnose.evaluate import MISSING
from ipydevice.diagnose.finding import Site
from ipydevice.diagnose.infer import call_name
from ipydevice.diagnose.source import once_a_node
from ipydevice.fixes.context import Context
from ipydevice.fixes.homebound import brought_home
from ipydevice.fixes.names import bound, last_name, root
from ipydevice.placement.kinds import torch_class

# Seen around a name, these say that it is wanted on the host there.
HOST_METHODS = frozenset(["numpy", "cpu", "tolist", "item", "size", "dim", "numel"])


HOST_ROOTS = frozenset(["np", "numpy", "plt", "sns", "pd", "ax", "axes", "sklearn", "scipy"])


_NOT_MET = frozenset(["shape", "dtype", "device", "to", "cuda"])  # no operand there, or moved already
VIEWS = frozenset(["T", "mT", "H", "mH", "data", "real", "imag"])  # attributes of a tensor that are tensors
LOADERS = frozenset(["DataLoader", "TensorDataset", "Subset", "random_split"])


def is_operand(ctx: Context, site: Site, node: ast.AST) -> bool:
    """Does the value meet other tensors there, rather than being collected, counted or given to the host?"""
    parent = site.source.parent(node)
    match parent:
        case ast.List(elts=elts) | ast.Tuple(elts=elts) if len(elts) > 1 and isinstance(parent.ctx, ast.Load):
            return _goes_together(site, parent)
        case ast.keyword() | ast.List() | ast.Tuple() | ast.Starred():
            return not isinstance(getattr(parent, "ctx", None), ast.Store) and is_operand(ctx, site, parent)
        case ast.Subscript(value=value, slice=index):
            if index is not node:  # "mean[:, None]" meets what mean meets
                return is_operand(ctx, site, parent)
            return placement.is_tensor(ctx.value(Site(site.source, value, site.frame)))
        case ast.Call(args=args, keywords=keywords):
            if (
                is_lengths(parent, node)
                or parent.func is node
                or root(parent.func) in HOST_ROOTS
                or last_name(parent.func) in LOADERS
            ):
                return False
            others = [a for a in (*args, *keywords) if a is not node and not isinstance(_bare(a), ast.Constant)]
            if isinstance(parent.func, ast.Attribute):
                if parent.func.attr in ("append", "extend", "update", "to", "add", "insert", "put", "tensor"):
                    return False
                receiver = ctx.value(Site(site.source, parent.func.value, site.frame))
                if placement.is_tensor(receiver) or (receiver is MISSING and _is_tensor_method(parent.func.attr)):
                    return not any(_to_host(a) for a in others)
            model = placement.is_module(ctx.value(Site(site.source, parent.func, site.frame)))
            if not others and not model and call_name(parent, ctx.scope(site)):
                return is_operand(ctx, site, parent)  # "F.normalize(x, dim=0)" meets what x meets
            return (bool(others) or model) and not any(_to_host(a) for a in others)
        case ast.BinOp(left=left, right=right):
            other = right if left is node else left
            if isinstance(other, ast.Constant):  # "1 - done" meets what done meets
                return is_operand(ctx, site, parent)
            return not _to_host(other)
        case ast.AugAssign(target=target, value=value) if value is node:
            live = ctx.value(Site(site.source, target, site.frame))
            return placement.is_tensor(live) and placement.device_of(live) == ctx.target
        case ast.UnaryOp():
            return is_operand(ctx, site, parent)
        case ast.Compare(left=left, comparators=comparators):
            rest = [a for a in (left, *comparators) if a is not node]
            if all(isinstance(a, ast.Constant) for a in rest):
                return is_operand(ctx, site, parent)
            return not any(isinstance(a, ast.Constant) or _to_host(a) for a in rest)
        case ast.Attribute(attr=attr) if attr in VIEWS:
            return is_operand(ctx, site, parent)
        case ast.Attribute(attr=attr) if attr not in HOST_METHODS and attr not in _NOT_MET:
            call = site.source.parent(parent)  # x.view(-1) meets what x meets
            return isinstance(call, ast.Call) and call.func is parent and is_operand(ctx, site, call)
        case _:
            return False


def is_lengths(call: ast.Call, node: ast.AST) -> bool:
    """The argument that pack_padded_sequence wants on the host (torch/nn/utils/rnn.py)."""
    if last_name(call.func) != "pack_padded_sequence":
        return False
    named = any(k.arg == "lengths" and node in (k, k.value) for k in call.keywords)
    return named or (len(call.args) > 1 and call.args[1] is node)


def _is_tensor_method(name: str) -> bool:
    tensor = torch_class("tensor")
    return tensor is not None and name in tensor.__mro__[1].__dict__  # torch._C.TensorBase has the operators


def _goes_together(site: Site, parts: ast.AST) -> bool:
    """``torch.cat([a, b])``: do the items of a list meet in one call?"""
    call = site.source.parent(parts)
    if isinstance(call, ast.keyword):
        call = site.source.parent(call)
    if not isinstance(call, ast.Call) or root(call.func) in HOST_ROOTS or last_name(call.func) in LOADERS:
        return False
    return last_name(call.func) not in ("append", "extend", "print", "zip", "len", "enumerate", "list", "tuple")


def _bare(node: ast.AST) -> ast.AST:
    return node.value if isinstance(node, ast.keyword) else node


def _to_host(node: ast.AST) -> bool:
    return any(isinstance(n, ast.Call) and last_name(n.func) in ("cpu", "numpy", "tolist") for n in ast.walk(node))


@once_a_node
def _parents_below(tree: ast.AST) -> dict[ast.AST, ast.AST]:
    """By each node that which it stands in, where that is not the tree itself."""
    return {child: node for node in ast.walk(tree) if node is not tree for child in ast.iter_child_nodes(node)}


def wanted_on_host(ctx: Context, name: str, area: ast.AST | None = None) -> bool:
    """Is this name also used where only the host will do: numpy, plots, loaders, lengths? In all cells or `area`."""
    trees = [ctx.work.effects(cell).tree for cell in ctx.work.order] if area is None else [area]
    for tree in trees:
        parents = _parents_below(tree)
        for node in ast.walk(tree):
            if not (isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Load)):
                continue
            below: ast.AST = node
            up = None if node is tree else parents.get(node, tree)
            while up is not None and not isinstance(up, ast.stmt):
                if isinstance(up, ast.Call) and (
                    last_name(up.func) in ("numpy", *LOADERS) or root(up.func) in HOST_ROOTS or is_lengths(up, below)
                ):
                    return True
                below, up = up, None if up is tree else parents.get(up, tree)
    return False


def attribute_wanted_on_host(ctx: Context, path: str) -> bool:
    """Is an attribute given to numpy, or as lengths, somewhere in the notebook?"""
    for cell in ctx.work.order:
        for call in ast.walk(ctx.work.effects(cell).tree):
            if not isinstance(call, ast.Call):
                continue
            host = root(call.func) in HOST_ROOTS
            for part in ast.walk(call):
                if not (isinstance(part, ast.Attribute) and part.attr == path.rpartition(".")[2]):
                    continue
                if host or any(is_lengths(call, a) and part in ast.walk(a) for a in (*call.args, *call.keywords)):
                    return True
    return False


def meets_home(ctx: Context, site: Site) -> bool:
    """Does the statement at `site`, or one that uses what it binds, compute with a local that was brought home?"""
    function = next(iter(ctx.work.functions(site.source, site.node)), None)
    statement = site.source.statement(site.node)
    if function is None or statement is None or site.frame is not None:
        return False
    home = brought_home(function, ctx.target)
    names = bound([statement])
    for node in ast.walk(function) if home else ():
        match node:
            case ast.AugAssign(target=target, value=value):
                parts: list[ast.expr] = [target, value]
            case ast.BinOp(left=left, right=right):
                parts = [left, right]
            case _:
                continue
        here = any(part is site.node or part is getattr(statement, "value", None) for part in (node, *parts))
        met = [{n.id for n in ast.walk(part) if isinstance(n, ast.Name)} for part in parts]
        for one, other in (met, met[::-1]):
            if one & home and (here or other & names):
                return True
    return False
