"""What an expression gives, told from texts where nothing lives any more: something that has no ``.to()``?"""

from __future__ import annotations

import ast
import builtins
import inspect
from collections.abc import Iterator
from types import FrameType, FunctionType, MethodType
from typing import Any

from ipydevice import placement
from ipydevice.diagnose import bindings
from ipydevice.diagnose.evaluate import MISSING, attribute, is_of
from ipydevice.diagnose.finding import Site
from ipydevice.diagnose.source import Source
from ipydevice.fixes import classes
from ipydevice.fixes.context import Context
from ipydevice.fixes.names import last_name, parameters
from ipydevice.fixes.sound import offers
from ipydevice.placement.kinds import attributes, bases, class_dicts, class_name

# What no attribute of a tensor can be asked of, whatever it holds.
NO_TENSOR = (
    ast.List,
    ast.Tuple,
    ast.Dict,
    ast.Set,
    ast.ListComp,
    ast.SetComp,
    ast.DictComp,
    ast.GeneratorExp,
    ast.Constant,
    ast.JoinedStr,
    ast.Lambda,
    ast.Compare,
    ast.BoolOp,
)
# Methods of tensors that return several of them.
_PARTS = ("split", "split_with_sizes", "tensor_split", "chunk", "unbind", "hsplit", "vsplit", "dsplit", "tolist")
_BUILT_IN = frozenset(
    "tuple list dict set frozenset sorted reversed zip enumerate range map filter len int float str bool iter".split()
)
_HANDS_OUT = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR
_DEPTH = 5  # names and calls that are followed


def has(ctx: Context, site: Site, node: ast.expr, name: str) -> bool:
    """Has what `node` denotes, or makes, an attribute of this name? True where that is not known."""
    if _gives_many(ctx, site, node):
        return False
    live = _bound_to(ctx, site, node)
    if live is not MISSING and live is not None:
        return offers(live, name)
    return not _unpacked(ctx, site, node) and not lacks(ctx, site, node, name)


def _gives_many(ctx: Context, site: Site, node: ast.expr) -> bool:
    """``x.split(4)``: a tuple of tensors. Of what is no tensor such a method may give anything."""
    if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _PARTS):
        return False
    holder = ctx.value(site, node.func.value)
    return holder is MISSING or placement.is_tensor(holder)


def _bound_to(ctx: Context, site: Site, node: ast.expr) -> Any:
    """What the name or attribute is by now that was given this value: ``self.prior`` of ``self.prior = make(k)``."""
    up = site.source.parent(node)
    if not (isinstance(up, ast.Assign) and up.value is node and len(up.targets) == 1):
        return MISSING
    target = up.targets[0]
    if isinstance(target, ast.Attribute):
        return _of_instances(ctx, site, target)
    if not isinstance(target, ast.Name):
        return MISSING
    area = site.source.function(up) or site.source.tree
    return ctx.value(site, target) if len(_stores(area, target.id)) == 1 else MISSING


def _stores(area: ast.AST, name: str) -> list[ast.Name]:
    return [n for n in ast.walk(area) if isinstance(n, ast.Name) and n.id == name and isinstance(n.ctx, ast.Store)]


def _unpacked(ctx: Context, site: Site, node: ast.expr) -> bool:
    """Is it what a function returns, and does the caller on the stray's way unpack that?"""
    statement = site.source.parent(node)
    if not isinstance(statement, ast.Return):
        return False
    for outer, step in zip(ctx.chain, ctx.chain[1:], strict=False):
        if step.how != "return" or step.site.source.statement(step.site.node) is not statement:
            continue
        bound_there = outer.site.source.statement(outer.site.node)
        if isinstance(bound_there, ast.Assign) and isinstance(bound_there.value, ast.Call):
            return isinstance(bound_there.targets[0], (ast.Tuple, ast.List))
    return False


def lacks(ctx: Context, site: Site, node: ast.expr, name: str, depth: int = _DEPTH) -> bool:
    """Has what the expression gives surely no attribute of this name?"""
    if isinstance(node, NO_TENSOR):
        return True
    live = ctx.value(site, node)
    if live is MISSING and isinstance(node, ast.Attribute):
        live = _of_instances(ctx, site, node)
    if live is not MISSING:
        return not offers(live, name)
    if depth == 0:
        return False
    match node:
        case ast.IfExp(body=body, orelse=other):
            return all(lacks(ctx, site, part, name, depth - 1) for part in (body, other))
        case ast.NamedExpr(value=value):
            return lacks(ctx, site, value, name, depth - 1)
        case ast.Subscript(value=value, slice=ast.Slice()):
            return lacks(ctx, site, value, name, depth - 1)
        case ast.Name():
            return _name_lacks(ctx, site, node, name, depth - 1)
        case ast.Call():
            return _call_lacks(ctx, site, node, name, depth - 1)
    return False


def _call_lacks(ctx: Context, site: Site, call: ast.Call, name: str, depth: int) -> bool:
    made = ctx.value(site, call.func)
    if made is MISSING and isinstance(call.func, ast.Attribute):
        made = _of_instances(ctx, site, call.func)
    if isinstance(call.func, ast.Name) and call.func.id in _BUILT_IN:
        hidden = ctx.work.is_local(Site(site.source, call.func, site.frame), call.func.id)
        if made is builtins.__dict__[call.func.id] or (made is MISSING and not hidden):
            return True
    if is_of(made, type):
        return not any(name in space or "__getattr__" in space for space in class_dicts(made))
    function = made.__func__ if type(made) is MethodType else made
    if type(function) is FunctionType and function.__code__.co_flags & _HANDS_OUT:
        return True
    if type(function) is FunctionType and function.__module__.startswith("torch.utils.data"):
        return True  # random_split(), default_collate(): lists and the like
    called = last_name(call.func)
    if function is not MISSING and (
        type(function) is not FunctionType or function.__name__ != called or "__wrapped__" in function.__dict__
    ):
        return False  # what a decorator made of it is not known
    found = [(source, f) for source, f in classes.functions_named(ctx, called) if f.name != "__init__"]
    return bool(found) and all(_result_lacks(ctx, source, one, name, depth) for source, one in found)


def _result_lacks(
    ctx: Context, source: Source, function: ast.FunctionDef | ast.AsyncFunctionDef, name: str, depth: int
) -> bool:
    """Do all that a function of the notebook returns lack it?"""
    if function.decorator_list and not all(last_name(d) in _PLAIN for d in function.decorator_list):
        return False
    own = [n for n in ast.walk(function) if source.function(n) is function]
    if any(isinstance(n, (ast.Yield, ast.YieldFrom)) for n in own):
        return True
    returned = [n.value for n in own if isinstance(n, ast.Return) and n.value is not None]
    return bool(returned) and all(lacks(ctx, Site(source, value), value, name, depth) for value in returned)


_PLAIN = ("staticmethod", "classmethod", "no_grad", "inference_mode", "wraps")


def _name_lacks(ctx: Context, site: Site, node: ast.Name, name: str, depth: int) -> bool:
    """Do all values that a local of a function that is over, or a global of a text, may have had lack it?"""
    function = site.source.function(site.node)
    if function is None and ctx.finding.read is not None:
        found = [bindings.of_name(source.tree, node.id) for source in classes.sources(ctx)]
        told = [binding.value for cell in found for binding in cell if binding.how == "assignment"]
        return bool(told) and all(isinstance(value, NO_TENSOR) for value in told)
    if not isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef)):
        return False
    values: list[ast.expr] = []
    for store in _stores(function, node.id):
        statement = site.source.parent(store)
        if not isinstance(statement, ast.Assign):
            return False  # of a loop, a tuple or another function
        values.append(statement.value)
    if node.id in parameters(function):
        given = list(arguments(ctx, function, node.id))
        if not given or not all(lacks(ctx, place, value, name, depth) for place, value in given):
            return False
    elif not values:
        return False
    return all(lacks(ctx, Site(site.source, value), value, name, depth) for value in values)


def arguments(
    ctx: Context, function: ast.FunctionDef | ast.AsyncFunctionDef, name: str
) -> Iterator[tuple[Site, ast.expr]]:
    """What the calls in the notebook hand to a function under this name."""
    names = parameters(function)
    place = names.index(name)
    called = function.name
    for source in classes.sources(ctx) if called == "__init__" else ():
        around = source.class_of(function)
        called = around.name if around is not None else called
    for source in classes.sources(ctx):
        for call in source.nodes:
            if not (isinstance(call, ast.Call) and last_name(call.func) == called):
                continue
            said = next((k.value for k in call.keywords if k.arg == name), None)
            at = place - (1 if names[:1] in (["self"], ["cls"]) else 0)
            if said is None and 0 <= at < len(call.args):
                said = call.args[at]
            if said is not None:
                frame = next((s.frame for s in _sites(ctx) if s.source is source and _same_code(s, call)), None)
                yield Site(source, said, frame), said


def _same_code(site: Site, node: ast.AST) -> bool:
    return site.source.function(site.node) is site.source.function(node)


def _sites(ctx: Context) -> list[Site]:
    """The places that the finding knows, most of them with a live frame."""
    finding = ctx.finding
    found = [finding.failed, *(step.site for step in (*finding.chain, *finding.owner_chain))]
    return [*found, *(site for site in (finding.start, finding.stray.site if finding.stray else None) if site)]


# -- objects of the class around a place --------------------------------------------------------------


def _of_instances(ctx: Context, site: Site, node: ast.Attribute) -> Any:
    """``self.x`` of a method that is over, where all objects of its class that are known agree about its kind."""
    if not (isinstance(node.value, ast.Name) and node.value.id == ctx.work.self_name(site)) or site.frame is not None:
        return MISSING
    found = [attribute(live, node.attr) for live in instances(ctx, site.source, node)]
    found = [live for live in found if live is not MISSING and live is not None]
    return found[0] if found and len({type(live) for live in found}) == 1 else MISSING


def instances(ctx: Context, source: Source, node: ast.AST) -> list[Any]:
    """The objects of the class around a node that the frames and the workspace hold, also as an attribute."""
    cls = source.class_of(node)
    return [] if cls is None else [live for live in reachable(ctx) if _is_named(live, cls.name)]


def reachable(ctx: Context) -> list[Any]:
    """The objects that the frames on the way, the workspace and their attributes hold."""
    if ctx.reached is not None:
        return ctx.reached
    frames: list[FrameType] = []
    for site in _sites(ctx):
        if site.frame is not None and not any(site.frame is frame for frame in frames):
            frames.append(site.frame)
    first = [live for frame in frames for live in list(frame.f_locals.values())]
    first += [live for name, live in list(ctx.finding.namespace.items()) if not name.startswith("_")]
    if ctx.stray is not None and ctx.stray.owner is not None:
        first.insert(0, ctx.stray.owner)
    found: dict[int, Any] = {id(live): live for live in first}
    for live in list(found.values()):
        inside = list(attributes(live).values()) if not is_of(live, type, FunctionType) else []
        inside += [member.value for member in placement.members(live)] if placement.is_module(live) else []
        for held in inside:
            found.setdefault(id(held), held)
    ctx.reached = list(found.values())
    return ctx.reached


def _is_named(live: Any, name: str) -> bool:
    return any(class_name(cls) == name for cls in bases(type(live)))
