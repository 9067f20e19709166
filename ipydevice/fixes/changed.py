"""What is written into where it lies: moved as its holder keeps it, never as a copy that nobody keeps."""

from __future__ import annotations

import ast

from ipydevice import placement
from ipydevice.diagnose.evaluate import MISSING
from ipydevice.diagnose.finding import Site
from ipydevice.fixes.context import Context, Proposal
from ipydevice.fixes.in_place import changed_in_place, written_in_place
from ipydevice.fixes.phrases import listed, move_all, to
from ipydevice.fixes.uses import next_strays, rest, widest
from ipydevice.language import say


def kept_moved_first(ctx: Context) -> Proposal | None:
    """``self.mean[k] = self.mean[k].to(x.device)`` above ``self.mean[k].mul_(m).add_(x)``, which writes into it.

    With what else the code behind it writes into, or meets, on the wrong device.
    """
    stray = ctx.stray
    if stray is None or stray.member or not isinstance(stray.site.node, ast.expr):
        return None
    site, node = stray.site, stray.site.node
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr.endswith("_"):
        node = node.func.value  # what it gives back is the tensor itself
    statement = site.source.statement(node)
    if statement is None or not changed_in_place(site.source, site.source.segment(node), statement):
        return None
    place = Site(site.source, statement, site.frame)
    written = [
        n
        for s in rest(site)
        for n in (*widest(s), *_set_anew(s))
        if changed_in_place(site.source, site.source.segment(n), s)
    ]
    kept = {site.source.segment(n): n for n in (node, *written) if _may_be_set(ctx, place, n)}
    names = {n.id for one in kept.values() for n in ast.walk(one) if isinstance(n, ast.Name)}
    device = ctx.device(place, avoid=names) if site.source.segment(node) in kept else None
    if device is None:
        return None
    draft = ctx.draft(site.source)
    draft.before(statement, move_all(list(kept), [f"{text}{to(device)}" for text in kept]))
    for use in next_strays(ctx, site):
        if site.source.segment(use) not in kept and not written_in_place(site, use):
            draft.suffix(use, to(device))
    names_of_it = listed(list(kept))
    title = (
        say("move {name} before it is changed", name=names_of_it)
        if len(kept) == 1
        else say("move {names} before they are changed", names=names_of_it)
    )
    return Proposal(title, [draft], note=say("moves nothing when it is there already"))


def _may_be_set(ctx: Context, place: Site, node: ast.expr) -> bool:
    """Is it a stray attribute or item, of no module, that may be bound to a moved copy above the place?"""
    if not isinstance(node, (ast.Attribute, ast.Subscript)):
        return False
    here = Site(place.source, node, place.frame)
    holder, live = ctx.value(here, node.value), ctx.value(here)
    names = {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}
    plain = holder is not MISSING and not placement.is_module(holder) and not placement.is_parameter(live)
    return plain and ctx.strays_like(live) and all(ctx.work.available(place, n) for n in names)


def _set_anew(statement: ast.stmt) -> list[ast.expr]:
    """``self.outer`` of ``self.outer += x.T @ x``"""
    return [statement.target] if isinstance(statement, ast.AugAssign) else []
