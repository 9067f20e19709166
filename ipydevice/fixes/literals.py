"""Devices written out, moves thrown away, accelerators that are not there."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from types import FrameType

from ipydevice.diagnose.finding import Site
from ipydevice.diagnose.source import Source
from ipydevice.fixes.context import Context, Proposal
from ipydevice.fixes.edits import Draft
from ipydevice.fixes.names import last_name
from ipydevice.language import say

_DEVICE = re.compile(r"(cuda|cpu|mps|xpu|hpu|npu|meta)(:\d+)?")
_SHORT = ("cuda", "cpu", "xpu", "hpu", "npu", "mps")


def _texts(ctx: Context) -> Iterator[Site]:
    """The statements to look at: of the stray, then along its way, the origin first."""
    sites = [ctx.finding.told] if ctx.finding.told is not None else []
    sites += [step.site for step in reversed(ctx.chain)]
    if ctx.stray is not None:
        sites.append(ctx.stray.site)
    sites.append(ctx.finding.failed)
    seen: set[int] = set()
    for site in sites:
        statement = site.source.statement(site.node)
        if statement is not None and id(statement) not in seen:
            seen.add(id(statement))
            yield Site(site.source, statement, site.frame)


def hardcoded(ctx: Context) -> Iterator[Proposal]:
    """The device that is written out becomes the device of what it meets."""
    for site in _texts(ctx):
        for node in _own_expressions(site.node):
            fixed = _generic(ctx, site, node)
            if fixed is not None:
                yield fixed
                return


def _own_expressions(statement: ast.AST) -> Iterator[ast.AST]:
    """The nodes of a statement, without the statements in its body."""
    yield statement
    for child in ast.iter_child_nodes(statement):
        if not isinstance(child, ast.stmt):
            yield from _own_expressions(child)


def _generic(ctx: Context, site: Site, node: ast.AST) -> Proposal | None:
    written = _literal(node)
    if written is None:
        return None
    device = ctx.device(Site(site.source, node, site.frame), avoid=_bound_here(site))
    if device is None:
        return None
    draft = ctx.draft(site.source)
    _say_instead(draft, node, device)
    area = site.source.function(node)
    for other in ast.walk(area) if area is not None else ():  # they would be the next error
        if other is not node and _literal(other) == written and not _overlap(node, other):
            there = ctx.device(Site(site.source, other, site.frame), avoid=_bound_here(site))
            if there is not None:
                _say_instead(draft, other, there)
    assert isinstance(node, ast.Call)
    place = _place(node)
    name = written if place is None else site.source.segment(place)
    return Proposal(say("say {device} instead of {name}", device=device, name=name), [draft])


def _literal(node: ast.AST) -> str | None:
    """How a call writes its device out: ``.cuda()``, ``"cuda:0"``, the tensor of ``type_as``."""
    if not isinstance(node, ast.Call):
        return None
    if isinstance(node.func, ast.Attribute) and node.func.attr in _SHORT and _is_index(node):
        return f".{node.func.attr}({', '.join(map(ast.unparse, node.args))})"
    place = _place(node)
    return None if place is None else ast.unparse(place)


def _place(call: ast.Call) -> ast.expr | None:
    """The argument that is a device written out."""
    called = last_name(call.func)
    places = [call.args[0]] if called in ("to", "type_as") and call.args else []
    places += [k.value for k in call.keywords if k.arg in ("device", "map_location")]
    return next((place for place in places if called == "type_as" or _is_device_literal(place)), None)


def _say_instead(draft: Draft, node: ast.AST, device: str) -> None:
    assert isinstance(node, ast.Call)
    place = _place(node)
    if place is None:
        assert isinstance(node.func, ast.Attribute)
        draft.replace(node, f"{draft.segment(node.func.value)}.to({device})")
    elif last_name(node.func) == "type_as":
        draft.suffix(node, f".to({device})")
    else:
        draft.replace(place, device)


def _overlap(one: ast.AST, other: ast.AST) -> bool:
    return any(node is other for node in ast.walk(one)) or any(node is one for node in ast.walk(other))


def _bound_here(site: Site) -> list[str]:
    from ipydevice.fixes.names import bound

    return sorted(bound([site.node]))


def _is_index(call: ast.Call) -> bool:
    return not call.args or (len(call.args) == 1 and isinstance(call.args[0], ast.Constant))


def _is_device_literal(node: ast.AST) -> bool:
    if isinstance(node, ast.Constant):
        return (isinstance(node.value, str) and bool(_DEVICE.fullmatch(node.value))) or type(node.value) is int
    if isinstance(node, ast.Call) and last_name(node.func) == "device":
        return all(isinstance(a, ast.Constant) for a in node.args)
    return False


# -- a move whose result is thrown away -----------------------------------------------------------


def discarded(ctx: Context) -> Iterator[Proposal]:
    """``x.to(device)`` becomes ``x = x.to(device)``; in a loop over a dict ``batch[k] = v.to(device)``."""
    for site in _texts(ctx):
        statement = site.node
        candidates = [statement] if isinstance(statement, ast.Expr) else []
        candidates += [s for s in ast.walk(statement) if isinstance(s, ast.Expr)]
        for candidate in candidates:
            kept = _kept(ctx, site, candidate)
            if kept is not None:
                yield kept
                return
    # The chain may end at a line beside it: look through the functions on the way.
    for site in _texts(ctx):
        area = site.source.function(site.node) or site.source.tree
        for node in ast.walk(area):
            if isinstance(node, ast.Expr):
                kept = _kept(ctx, Site(site.source, node, site.frame), node)
                if kept is not None:
                    yield kept
                    return


def _kept(ctx: Context, site: Site, statement: ast.AST) -> Proposal | None:
    if not isinstance(statement, ast.Expr):
        return None
    call, source = statement.value, site.source
    if isinstance(call, ast.ListComp) and _is_move(call.elt):
        target = source.segment(call.generators[0].iter)
        return _assigned(ctx, source, statement, target) if _is_place(call.generators[0].iter) else None
    if not _is_move(call):
        return None
    assert isinstance(call, ast.Call)
    assert isinstance(call.func, ast.Attribute)
    value = call.func.value
    loop = source.parent(statement)
    if isinstance(loop, ast.For) and isinstance(value, ast.Name):
        place = _loop_place(loop, value.id, source)
        if place is not None:
            return _assigned(ctx, source, statement, place)
        if _is_plain(source, loop, value.id) and not _holds_modules(ctx, Site(source, loop.iter, site.frame)):
            return _all_kept(ctx, source, loop, call)
    live = ctx.value(Site(source, value, site.frame))
    from ipydevice import placement

    if placement.is_module(live) or not _is_place(value):
        return None
    return _assigned(ctx, source, statement, source.segment(value))


def _assigned(ctx: Context, source: Source, statement: ast.Expr, target: str) -> Proposal:
    draft = ctx.draft(source)
    draft.replace_statement(statement, f"{target} = {draft.segment(statement.value)}")
    title = say("keep the result of {call}", call=source.segment(statement.value))
    for other in _block_of(source, statement):
        if other is not statement and isinstance(other, ast.Expr) and _is_move(other.value):
            assert isinstance(other.value, ast.Call)
            assert isinstance(other.value.func, ast.Attribute)
            value = other.value.func.value
            if isinstance(value, ast.Name) and ctx.is_stray(Site(source, value, _frame_of(ctx, source))):
                draft.replace_statement(other, f"{value.id} = {draft.segment(other.value)}")
                title = say("keep the results of the moves")
    return Proposal(title, [draft])


def _is_plain(source: Source, loop: ast.For, name: str) -> bool:
    """``for one in batch: one.to(device)``: does the loop go through what has a name, and do nothing else?"""
    if len(loop.body) > 1 or loop.orelse or "#" in source.segment(loop):
        return False
    return isinstance(loop.target, ast.Name) and loop.target.id == name and _is_place(loop.iter)


def _holds_modules(ctx: Context, site: Site) -> bool:
    from ipydevice import placement

    live = ctx.value(site)
    return type(live) in (list, tuple) and any(placement.is_module(part) for part in live)


def _all_kept(ctx: Context, source: Source, loop: ast.For, call: ast.Call) -> Proposal:
    draft = ctx.draft(source)
    text, items, one = (source.segment(node) for node in (call, loop.iter, loop.target))
    draft.replace_statement(loop, f"{items} = [{text} for {one} in {items}]")
    return Proposal(say("keep the result of {call}", call=text), [draft])


def _block_of(source: Source, statement: ast.stmt) -> list[ast.stmt]:
    parent = source.parent(statement)
    for _, block in ast.iter_fields(parent) if parent is not None else ():
        if isinstance(block, list) and statement in block:
            return list(block)
    return []


def _frame_of(ctx: Context, source: Source) -> FrameType | None:
    sites = [*(step.site for step in ctx.chain), ctx.finding.failed]
    return next((site.frame for site in sites if site.source is source and site.frame is not None), None)


def _is_move(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in ("to", *_SHORT)


def _is_place(node: ast.AST) -> bool:
    return isinstance(node, (ast.Name, ast.Attribute, ast.Subscript))


def _loop_place(loop: ast.For, name: str, source: Source) -> str | None:
    """Where a loop's value belongs: ``batch[k]`` of ``for k, v in batch.items()``."""
    match loop:
        case ast.For(
            target=ast.Tuple(elts=[key, ast.Name(id=value)]),
            iter=ast.Call(func=ast.Attribute(value=held, attr="items")),
        ) if value == name:
            return f"{source.segment(held)}[{source.segment(key)}]"
        case ast.For(
            target=ast.Tuple(elts=[key, ast.Name(id=value)]), iter=ast.Call(func=ast.Name(id="enumerate"), args=[held])
        ) if value == name:
            return f"{source.segment(held)}[{source.segment(key)}]"
    return None
