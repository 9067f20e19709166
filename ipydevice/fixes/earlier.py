"""What worked before the failure: a value that met host tensors then must not be moved before that."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

from ipydevice import placement
from ipydevice.diagnose.evaluate import MISSING
from ipydevice.diagnose.finding import Site
from ipydevice.diagnose.infer import call_name
from ipydevice.diagnose.source import Source
from ipydevice.fixes import classes, operands
from ipydevice.fixes.context import Context
from ipydevice.fixes.names import Effects, bound, free, last_name, own_nodes, root
from ipydevice.placement.kinds import class_name

_HARMLESS = frozenset(
    ["print", "len", "range", "enumerate", "zip", "type", "repr", "str", "display", "isinstance", "id"]
)
_CONTAINERS = (ast.List, ast.Tuple, ast.Set, ast.Starred, ast.Dict)


def last_met(ctx: Context, name: str, site: Site, statement: ast.stmt) -> Site | None:
    """The last statement of a cell, between `statement` and the failure, in which the value of `name` met others.

    These ran with the value where it is now, so they would fail with it elsewhere.  None where there is none.
    """
    if any(True for _ in ctx.work.functions(site.source, statement)) or site.source.cell is None:
        return None  # a local of a function
    found: Site | None = None
    for source, later in between(ctx, site.source, statement):
        if _meets(ctx, source, later, name):
            found = Site(source, later)
        if name in bound([later]) and not isinstance(later, (ast.FunctionDef, ast.ClassDef)):
            break  # another value from here on
    return found


def last_met_inside(ctx: Context, owner: Any, site: Site, statement: ast.stmt) -> Site | None:
    """As `last_met`, of an object, by whatever names of the workspace that lead to it."""
    found: Site | None = None
    for name, live in list(ctx.finding.namespace.items()):
        if name.startswith("_") or not (live is owner or _holds(live, owner)):
            continue
        met = last_met(ctx, name, site, statement)
        if met is not None and (found is None or _place(ctx, met) > _place(ctx, found)):
            found = met
    return found


def _holds(live: Any, owner: Any) -> bool:
    if placement.kind_of(live) not in ("module", "object", "container"):
        return False
    return any(one.owner is owner for one in placement.walk(live))


def _place(ctx: Context, site: Site) -> tuple[int, int]:
    return ctx.work.position(site.source.cell), getattr(site.node, "lineno", 0)


def between(ctx: Context, source: Source, statement: ast.stmt) -> Iterator[tuple[Source, ast.stmt]]:
    """The statements of the cells that ran after `statement` and before the one that failed."""
    running = _running_line(ctx)
    order = ctx.work.order
    first = ctx.work.position(source.cell)
    for cell in order[first:]:
        here = source if cell is order[first] else classes.cell_source(ctx, cell)
        for one in here.tree.body:
            if here is source and one.lineno <= statement.lineno:
                continue
            if cell is ctx.work.failed and running <= (one.end_lineno or 0):
                return
            yield here, one


def may_change(ctx: Context, statement: ast.stmt, name: str) -> bool:
    """Does the statement, itself or by a function of the notebook, put something into what `name` holds?"""
    nodes = list(own_nodes([statement]))
    own = Effects(ast.Module(body=[statement], type_ignores=[]))
    if name in own.changes or name in own.binds:
        return True
    called = {last_name(node.func) for node in nodes if isinstance(node, ast.Call)}
    todo, seen = list(called), set(called)
    while todo:
        for _, function in classes.functions_named(ctx, todo.pop()):
            body = Effects(ast.Module(body=list(function.body), type_ignores=[]))
            if name in body.changes and name in free(function):
                return True
            inner = {last_name(n.func) for n in ast.walk(function) if isinstance(n, ast.Call)} - seen
            seen |= inner
            todo += inner
    return False


def _running_line(ctx: Context) -> int:
    """The line of the failed cell that was running; 0 where that is not known."""
    start, failed = ctx.finding.start, ctx.finding.failed
    if start is None or start.frame is None:
        return failed.node.lineno if failed.source.cell is ctx.work.failed and hasattr(failed.node, "lineno") else 0
    return start.frame.f_lineno


def _meets(ctx: Context, source: Source, statement: ast.stmt, name: str) -> bool:
    nodes = list(own_nodes([statement]))
    if any(_is(node, name) and _met_at(ctx, source, node) for node in nodes):
        return True
    called = {last_name(node.func) for node in nodes if isinstance(node, ast.Call)}
    for one in called:
        for where, function in classes.functions_named(ctx, one):
            if name in free(function):
                return any(_is(node, name) and _met_at(ctx, where, node) for node in ast.walk(function))
    return False


def _is(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Load)


def _met_at(ctx: Context, source: Source, node: ast.AST) -> bool:
    """Does the value, or what is taken or computed from it in the same expression, meet others there?"""
    while True:
        parent = source.parent(node)
        match parent:
            case ast.Attribute(attr=name):
                call = source.parent(parent)
                if not (isinstance(call, ast.Call) and call.func is parent):
                    if name in operands.HOST_METHODS or name in ("shape", "dtype", "device", "ndim"):
                        return False
                    node = parent
                    continue
                if name in ("to", "cuda", "cpu", "size", "dim", "numel", "item", "tolist", "requires_grad_"):
                    return False
                if any(not _plain(ctx, source, arg) for arg in (*call.args, *(k.value for k in call.keywords))):
                    return True
                node = call
            case ast.Subscript(value=held):
                if held is not node or not _plain(ctx, source, parent.slice):
                    return True
                node = parent
            case ast.BinOp(left=left, right=right):
                if not _plain(ctx, source, right if left is node else left):
                    return True
                node = parent
            case ast.Compare(left=left, comparators=rest):
                if not all(one is node or _plain(ctx, source, one) for one in (left, *rest)):
                    return True
                node = parent
            case ast.UnaryOp() | ast.keyword():
                node = parent
            case ast.Call(func=func, args=args, keywords=keywords):
                if func is node:
                    return True
                called = last_name(func)
                if called in _HARMLESS or called in operands.LOADERS or called[:1].isupper():
                    return False
                others = [a for a in args if a is not node] + [k.value for k in keywords if k is not node]
                known = call_name(parent, ctx.scope(Site(source, parent)))
                if not known or root(func) in operands.HOST_ROOTS or not all(_plain(ctx, source, a) for a in others):
                    return True
                node = parent
            case _ if isinstance(parent, _CONTAINERS):
                above = source.parent(parent)
                held_by_call = isinstance(above, ast.Call) and last_name(above.func) not in _HARMLESS
                return held_by_call and operands.is_operand(ctx, Site(source, node), node)
            case _:
                return False


def _plain(ctx: Context, source: Source, node: ast.AST) -> bool:
    """A number, text or slice of numbers, as far as is known."""
    if isinstance(node, ast.Slice):
        return all(part is None or _plain(ctx, source, part) for part in (node.lower, node.upper, node.step))
    if isinstance(node, (ast.Constant, ast.UnaryOp)):
        return True
    if isinstance(node, (ast.Tuple, ast.List)):
        return all(_plain(ctx, source, part) for part in node.elts)
    if isinstance(node, ast.Call):
        return last_name(node.func) in ("len", "int", "float", "size", "dim", "numel", "item")
    live: Any = ctx.value(Site(source, node)) if isinstance(node, (ast.Name, ast.Attribute, ast.Subscript)) else MISSING
    return type(live) in (int, float, bool, str, type(None), slice) or class_name(type(live)) == "dtype"
