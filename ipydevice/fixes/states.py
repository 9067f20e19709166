"""What is kept between calls: hidden states and caches."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

from ipydevice import placement
from ipydevice.diagnose.finding import Site
from ipydevice.fixes import classes
from ipydevice.fixes.attributes import as_buffer, at_use, owners
from ipydevice.fixes.context import Context, Proposal
from ipydevice.fixes.modules import workspace_device
from ipydevice.fixes.objects import move_object
from ipydevice.placement.kinds import attributes


def kept_state(ctx: Context) -> Iterator[Proposal]:
    """A hidden state kept between calls: a buffer, or moved before it is used, None left alone."""
    for owner, attribute in owners(ctx):
        if placement.is_module(owner):
            buffer = as_buffer(ctx, owner, attribute)
            if buffer is not None:
                buffer.title = f"make the state {attribute} a buffer, which moves with the module"
                yield buffer
        guarded = _moved_if_there(ctx, owner, attribute)
        if guarded is not None:
            yield guarded


def _moved_if_there(ctx: Context, owner: Any, attribute: str) -> Proposal | None:
    stray = ctx.stray
    assert stray is not None
    node: ast.AST = stray.site.node
    while isinstance(node, ast.Subscript):
        node = node.value
    site = Site(stray.site.source, node, stray.site.frame)
    statement = site.source.statement(node)
    if not isinstance(node, ast.Attribute) or statement is None or node.attr != attribute:
        return None
    name = site.source.segment(node)
    device = ctx.device(Site(site.source, statement, site.frame))
    held = attributes(owner).get(attribute)
    if device is None:
        return None
    moved = f"{name}.to({device})" if placement.is_tensor(held) else f"tuple(s.to({device}) for s in {name})"
    draft = ctx.draft(site.source)
    draft.before(statement, f"if {name} is not None:\n    {name} = {moved}")
    path, here = classes.owner_path(ctx), workspace_device(ctx)
    live = None
    if path is not None and here is not None and placement.is_tensor(held):
        live = f"{path}.{attribute} = {path}.{attribute}.to({here})"
    return Proposal(f"move {name} to the input's device before it is used", [draft], live=live)


def stale_cache(ctx: Context) -> Iterator[Proposal]:
    """Make the cache ask for the device; or move what comes out of it."""
    rebuilt = _rebuilt_elsewhere(ctx)
    if rebuilt is not None:
        yield rebuilt
    for step in ctx.chain:
        statement = _giving_out(step.site)
        if step.how == "return" and isinstance(statement, ast.Return) and statement.value is not None:
            device = ctx.device(Site(step.site.source, statement.value, step.site.frame))
            if device is not None:
                draft = ctx.draft(step.site.source)
                draft.suffix(statement.value, f".to({device})")
                yield Proposal("move what comes out of the cache", [draft])
            break
    yield from at_use(ctx)
    for owner, _ in owners(ctx):
        if not placement.is_module(owner):
            whole = move_object(ctx, owner)
            if whole is not None:
                yield whole


def _giving_out(site: Site) -> ast.stmt | None:
    """Of the returns of a function that keeps what it makes, the one that gives out what was kept."""
    statement, function = site.source.statement(site.node), site.source.function(site.node)
    returns = [n for n in ast.walk(function) if isinstance(n, ast.Return)] if function is not None else []
    kept = [r for r in returns if isinstance(r.value, (ast.Subscript, ast.Attribute))]
    return statement if statement in kept or len(kept) != 1 else kept[0]


def _rebuilt_elsewhere(ctx: Context) -> Proposal | None:
    """``if self.mask is None:`` becomes ``if self.mask is None or self.mask.device != x.device:``."""
    for owner, attribute in owners(ctx):
        for setting in classes.settings(ctx, owner, attribute):
            source = setting.site.source
            for up in source.ancestors(setting.statement):
                if isinstance(up, ast.If) and setting.statement in up.body and _asks_for(up.test, attribute):
                    if classes.is_random(setting.statement, source):
                        return None
                    name = source.segment(_own(up.test, attribute))
                    live_frame = ctx.stray.site.frame if ctx.stray and ctx.stray.site.source is source else None
                    device = ctx.device(Site(source, up.test, live_frame), avoid=[attribute])
                    if device is None or name in device:
                        continue
                    draft = ctx.draft(source)
                    draft.suffix(up.test, f" or {name}.device != {device}") if _or_able(up.test) else None
                    if draft:
                        return Proposal(f"make {name} anew when the device has changed", [draft])
    return None


def _asks_for(test: ast.expr, attribute: str) -> bool:
    return any(
        isinstance(n, ast.Compare)
        and isinstance(n.left, ast.Attribute)
        and n.left.attr == attribute
        and isinstance(n.ops[0], ast.Is)
        for n in ast.walk(test)
    )


def _own(test: ast.expr, attribute: str) -> ast.expr:
    return next(n for n in ast.walk(test) if isinstance(n, ast.Attribute) and n.attr == attribute)


def _or_able(test: ast.expr) -> bool:
    return isinstance(test, ast.Compare)
