"""What is written where it stands, as in ``total += x``: a copy would be written in its place."""

from __future__ import annotations

import ast

from ipydevice.diagnose.finding import Site
from ipydevice.diagnose.source import Source
from ipydevice.fixes.operands import VIEWS


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
