"""Parts of one object that are moved one by one, of which one was forgotten: moved beside the others."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

from ipydevice import placement
from ipydevice.diagnose.evaluate import MISSING, attribute, is_of, item
from ipydevice.diagnose.finding import Site
from ipydevice.diagnose.source import Source
from ipydevice.fixes import classes, sound
from ipydevice.fixes.context import Context, Proposal
from ipydevice.fixes.movers import is_move
from ipydevice.fixes.names import last_name
from ipydevice.fixes.phrases import listed
from ipydevice.language import say
from ipydevice.placement.kinds import class_name


def forgotten_part(ctx: Context) -> Iterator[Proposal]:
    """A name missing in the list of those that are moved, a sibling of what is moved in a statement."""
    found = _part(ctx)
    if found is not None:
        yield from _missing_name(ctx, *found)
        yield from _beside_sibling(ctx, *found)


# -- lists of names ---------------------------------------------------------------------------------


def _missing_name(ctx: Context, holder: Any, name: str) -> Iterator[Proposal]:
    """``for key in ("x", "y"): ... .to(device)`` gets the name that it lacks."""
    for source in classes.sources(ctx):
        for node in source.nodes:
            for loop in _loops(node):
                if not any(is_move(n) for n in ast.walk(node)):
                    continue
                names = _names_in(ctx, source, node, loop, holder)
                texts = _texts(names)
                if names is None or not texts or name in texts or not _moves_these(ctx, holder, texts):
                    continue
                draft = ctx.draft(source)
                draft.replace(names, _longer(draft.segment(names), classes.quote(source, name)))
                yield Proposal(say("move {name} with the others: add it to their names", name=name), [draft])
                return


def _loops(node: ast.AST) -> list[tuple[ast.AST, ast.expr]]:
    """(target, iterable) of the loops that `node` is."""
    if isinstance(node, ast.For):
        return [(node.target, node.iter)]
    return [(g.target, g.iter) for g in getattr(node, "generators", [])]


def _part(ctx: Context) -> tuple[Any, str] | None:
    """(the object that holds the stray, its name there: an attribute or a key)."""
    stray = ctx.stray
    if stray is None:
        return None
    for text in (stray.expression, stray.path, *_written(ctx)):
        try:
            node = ast.parse(text or "", mode="eval").body
        except SyntaxError:
            continue
        name = _last_part(node)
        if name is None or not isinstance(node, (ast.Attribute, ast.Subscript)):
            continue
        for live in _live_everywhere(ctx, node.value):
            held = item(live, name) if isinstance(node, ast.Subscript) else attribute(live, name)
            if held is not MISSING and ctx.strays_like(held):
                return live, name
    failed = ctx.finding.failed
    for part in ast.walk(failed.source.statement(failed.node) or failed.node):
        name = _last_part(part)
        if name is not None and isinstance(part, (ast.Attribute, ast.Subscript)) and stray.known:
            live = ctx.value(failed, part)
            if placement.is_tensor(live) and ctx.strays_like(live) and placement.same(live, stray.value):
                return ctx.value(failed, part.value), name
    if stray.owner is not None and stray.attribute.isidentifier() and not placement.is_module(stray.owner):
        return stray.owner, stray.attribute
    return None


def _written(ctx: Context) -> Iterator[str]:
    """How the stray is written on its way: ``batch["mask"]``."""
    for step in ctx.chain:
        if step.how in ("argument", "assignment") and step.value is not None:
            yield ast.unparse(step.value)


def _last_part(node: ast.AST) -> str | None:
    if isinstance(node, ast.Attribute):
        return node.attr
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant) and type(node.slice.value) is str:
        return node.slice.value
    return None


def _live_everywhere(ctx: Context, node: ast.expr) -> Iterator[Any]:
    """What an expression denotes in each of the live frames."""
    stray = ctx.stray
    sites = [stray.site] if stray is not None else []
    for site in (*sites, ctx.finding.failed, *(step.site for step in ctx.chain)):
        names = [n.id for n in ast.walk(node) if isinstance(n, ast.Name)]
        if all(ctx.work.value(site, name) is not MISSING for name in names):
            live = sound.value_at(ctx, site, node)
            if live is not MISSING and live is not None:
                yield live


def _names_in(
    ctx: Context, source: Source, node: ast.AST, loop: tuple[ast.AST, ast.expr], holder: Any
) -> ast.expr | None:
    """The literal list of names that a loop goes through, written there or bound to a name."""
    target, given = loop
    if not isinstance(target, ast.Name):
        return None
    used = {n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}
    if target.id not in used:
        return None
    if isinstance(given, ast.Name):
        area = [*ctx.work.functions(source, node), source.tree]
        values = [v for a in area for s in ast.walk(a) if (v := _bound_to(s, given.id)) is not None]
    elif isinstance(given, ast.Attribute) and isinstance(given.value, ast.Name):
        node_of = source.class_of(node)
        values = (
            [] if node_of is None else [v for s in ast.walk(node_of) if (v := _bound_to(s, given.attr)) is not None]
        )
    else:
        values = [given]
    return values[0] if len({id(v) for v in values}) == 1 else None


def _bound_to(node: ast.AST, name: str) -> ast.expr | None:
    """The value of an assignment to this name or attribute alone."""
    plain = isinstance(node, ast.Assign) and len(node.targets) == 1 and last_name(node.targets[0]) == name
    return node.value if plain and isinstance(node, ast.Assign) else None


def _texts(node: ast.expr | None) -> list[str]:
    if not isinstance(node, (ast.List, ast.Tuple, ast.Set)):
        return []
    found = [e.value for e in node.elts if isinstance(e, ast.Constant) and type(e.value) is str]
    return found if len(found) == len(node.elts) else []


def _moves_these(ctx: Context, holder: Any, names: list[str]) -> bool:
    """Are the named parts of the object, one at least, on the device on which the stray should be?"""
    parts = [item(holder, n) if is_of(holder, dict) else attribute(holder, n) for n in names]
    return any(placement.is_tensor(p) and placement.device_of(p) == ctx.target for p in parts)


def _longer(text: str, new: str) -> str:
    """The text of a list of names with another one."""
    closing = text[-1] if text[-1:] in ")]}" and text[:1] in "([{" else ""
    inner = text[: len(text) - len(closing)].rstrip()
    return f"{inner.removesuffix(',')}, {new}{closing}"


# -- siblings -----------------------------------------------------------------------------------------


def _beside_sibling(ctx: Context, holder: Any, name: str) -> Iterator[Proposal]:
    """``batch["image"] = batch["image"].to(device)`` stands there: so is ``batch["mask"]`` moved, below it."""
    names = [name, *_met_beside(ctx, holder, name)]
    for source in classes.sources(ctx):
        for node in source.nodes:
            moved = _moved_part(node)
            if moved is None or not isinstance(node, ast.Assign):
                continue
            target, call = moved
            part = _last_part(target)
            if part is None or part in names or not _moves_these(ctx, holder, [part]):
                continue
            if isinstance(target, ast.Subscript) != is_of(holder, dict):
                continue
            old = source.segment(target)
            base = source.segment(target.value)
            tail = source.segment(call)[len(old) :]
            if any(_is_stored(source, node, base, one) for one in names):
                continue
            own = isinstance(target, ast.Attribute) and base == ctx.work.self_name(Site(source, node))
            if own and not _is_class_of(source.class_of(node), holder):
                continue
            draft = ctx.draft(source)
            for one in reversed(names):
                said = f"{base}[{classes.quote(source, one)}]" if isinstance(target, ast.Subscript) else f"{base}.{one}"
                draft.after(node, f"{said} = {said}{tail}")
            yield Proposal(say("move {names} beside {part}", names=listed(names), part=part), [draft])
            return


def _moved_part(node: ast.AST) -> tuple[ast.Attribute | ast.Subscript, ast.Call] | None:
    """``b["x"] = b["x"].to(device)``: the part, and the move."""
    if not (isinstance(node, ast.Assign) and len(node.targets) == 1 and is_move(node.value)):
        return None
    target, call = node.targets[0], node.value
    assert isinstance(call, ast.Call)
    assert isinstance(call.func, ast.Attribute)
    if isinstance(target, (ast.Attribute, ast.Subscript)) and ast.unparse(target) == ast.unparse(call.func.value):
        return target, call
    return None


def _is_stored(source: Source, node: ast.stmt, base: str, name: str) -> bool:
    """Is the part bound in the same function already?"""
    area = source.function(node) or source.tree
    for other in ast.walk(area):
        part = isinstance(other, (ast.Attribute, ast.Subscript)) and isinstance(other.ctx, ast.Store)
        if part and source.segment(other.value) == base and _last_part(other) == name:  # type: ignore[attr-defined]
            return True
    return False


def _is_class_of(node: ast.ClassDef | None, holder: Any) -> bool:
    return node is not None and any(node.name == class_name(cls) for cls in type(holder).__mro__)


def _met_beside(ctx: Context, holder: Any, name: str) -> list[str]:
    """Other parts of the same object on the wrong device, used in the statements on the stray's way."""
    found: list[str] = []
    for site in (ctx.finding.failed, *(step.site for step in ctx.chain)):
        for node in ast.walk(site.source.function(site.node) or site.node):
            part = _last_part(node)
            if part is None or part == name or part in found or not isinstance(node, (ast.Attribute, ast.Subscript)):
                continue
            if isinstance(node, ast.Subscript) == is_of(holder, dict) and isinstance(node.ctx, ast.Load):
                live = item(holder, part) if is_of(holder, dict) else attribute(holder, part)
                if ctx.strays_like(live) and any(one is holder for one in _live_everywhere(ctx, node.value)):
                    found.append(part)
    return found
