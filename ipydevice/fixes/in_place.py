"""What is written where it stands, as in ``total += x``: a copy would be written in its place."""

from __future__ import annotations

import ast

from ipydevice import placement
from ipydevice.diagnose.evaluate import MISSING
from ipydevice.diagnose.finding import Site
from ipydevice.diagnose.source import Source
from ipydevice.fixes.context import Context, Proposal
from ipydevice.fixes.operands import VIEWS
from ipydevice.fixes.phrases import to


def written_in_place(site: Site, node: ast.AST) -> bool:
    """Is the value written where it stands: ``x.add_(y)``, ``x.view(-1)[i] += y``, ``out=x``? A copy loses it."""
    source = site.source
    seen = _view_of(source, node)
    if seen is not None:
        return written_in_place(site, seen)
    parent = source.parent(node)
    if isinstance(parent, ast.Attribute) and parent.attr.endswith("_") and not parent.attr.endswith("__"):
        return isinstance(source.parent(parent), ast.Call)
    if isinstance(parent, ast.Subscript) and parent.value is node and not isinstance(parent.ctx, ast.Load):
        return True
    if isinstance(parent, ast.AugAssign) and parent.target is node:
        return True
    return isinstance(parent, ast.keyword) and parent.arg == "out"


def _view_of(source: Source, node: ast.AST) -> ast.AST | None:
    """``x.view(-1)``, ``x.T`` and ``x[i]`` of ``x``, which write into it: the node itself, where it is read."""
    up = source.parent(node)
    if isinstance(up, ast.Attribute) and up.value is node:
        call = source.parent(up)
        if up.attr in _SEES_THE_SAME and isinstance(call, ast.Call) and call.func is up:
            return call
        return up if up.attr in VIEWS else None
    return up if isinstance(up, ast.Subscript) and up.value is node and isinstance(up.ctx, ast.Load) else None


_SEES_THE_SAME = frozenset(
    "view view_as reshape flatten unflatten squeeze unsqueeze t transpose permute movedim swapaxes expand narrow "
    "select diagonal unfold detach ravel as_strided".split()
)


def changed_in_place(source: Source, text: str, area: ast.AST | None) -> bool:
    """Does the area write into what `text` names, as in ``slow += 0.5 * (fast - slow)``?"""
    for node in ast.walk(area) if area is not None else ():
        if isinstance(node, ast.AugAssign) and source.segment(node.target) == text:
            return True
        read = isinstance(node, (ast.Name, ast.Attribute, ast.Subscript)) and isinstance(node.ctx, ast.Load)
        if read and written_in_place(Site(source, node), node) and source.segment(node) == text:
            return True
    return False


def kept_moved_first(ctx: Context) -> Proposal | None:
    """``self.mean[k] = self.mean[k].to(x.device)`` above ``self.mean[k].mul_(m).add_(x)``, which writes into it."""
    stray = ctx.stray
    if stray is None or stray.member or not isinstance(stray.site.node, ast.expr):
        return None
    site, node = stray.site, stray.site.node
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr.endswith("_"):
        node = node.func.value  # what it gives back is the tensor itself
    holder = ctx.value(site, node.value) if isinstance(node, (ast.Attribute, ast.Subscript)) else MISSING
    statement = site.source.statement(node)
    text = site.source.segment(node)
    if holder is MISSING or statement is None or not changed_in_place(site.source, text, statement):
        return None
    live = ctx.value(site, node)
    place = Site(site.source, statement, site.frame)
    names = {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}
    if (
        not ctx.strays_like(live)
        or placement.is_parameter(live)
        or not all(ctx.work.available(place, n) for n in names)
    ):
        return None
    device = ctx.device(place, avoid=names)
    if device is None or placement.is_module(holder):
        return None
    draft = ctx.draft(site.source)
    draft.before(statement, f"{text} = {text}{to(device)}")
    return Proposal(f"move {text} before it is changed", [draft], note="moves nothing when it is there already")
