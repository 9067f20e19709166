"""Loops that move each item under their own name and leave what they go through as it was: written back there."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ipydevice.diagnose.source import Source
from ipydevice.fixes.context import Context, Proposal
from ipydevice.fixes.movers import functions_on_the_way, is_move
from ipydevice.language import say

_Loop = ast.For | ast.AsyncFor


def written_back(ctx: Context) -> Iterator[Proposal]:
    """``value = value.to(device)`` in a loop over ``batch.items()`` becomes ``batch[key] = value.to(device)``."""
    for source, area in _areas(ctx):
        draft = ctx.draft(source)
        places = []
        for node in ast.walk(area):
            if isinstance(node, ast.Assign) and source.function(node) is (
                None if isinstance(area, ast.Module) else area
            ):
                place = _place(source, node)
                if place is not None:
                    held, target, loop = place
                    places.append(held)
                    draft.replace(node.targets[0], target)
                    if loop is not None:
                        draft.replace(loop[0], loop[1])
                        draft.replace(loop[2], loop[3])
        if places:
            yield Proposal(say("write what the loop moves back into {name}", name=places[0]), [draft])
            return


def _areas(ctx: Context) -> Iterator[tuple[Source, ast.AST]]:
    """The functions on the stray's way, and the cells whose own lines it came by."""
    yield from functions_on_the_way(ctx)
    seen: set[int] = set()
    for site in (*(step.site for step in ctx.chain), ctx.finding.failed):
        if site.source.function(site.node) is None and id(site.source) not in seen:
            seen.add(id(site.source))
            yield site.source, site.source.tree


_Header = tuple[ast.expr, str, ast.expr, str]  # a loop's target and what it becomes, the same of what it goes through


def _place(source: Source, node: ast.Assign) -> tuple[str, str, _Header | None] | None:
    """(what is gone through, where the moved item belongs in it, the loop's new header) of a move that is lost."""
    target, value = node.targets[0], node.value
    loop = next((up for up in source.ancestors(node) if isinstance(up, _Loop)), None)
    if loop is None or len(node.targets) > 1 or not isinstance(target, ast.Name) or not is_move(value):
        return None
    moved = value.func.value  # type: ignore[attr-defined]
    if _is_used_after(source, loop, node, target.id):
        return None
    if isinstance(moved, ast.Subscript) and isinstance(moved.value, (ast.Name, ast.Attribute)):
        key = loop.target
        if isinstance(key, ast.Name) and isinstance(moved.slice, ast.Name) and moved.slice.id == key.id:
            return source.segment(moved.value), source.segment(moved), None
        return None
    return _of_loop(source, loop, target.id) if isinstance(moved, ast.Name) and moved.id == target.id else None


def _of_loop(source: Source, loop: _Loop, name: str) -> tuple[str, str, _Header | None] | None:
    match loop.target, loop.iter:
        case (
            ast.Tuple(elts=[ast.Name(id=key), ast.Name(id=value)]),
            ast.Call(func=ast.Attribute(value=held, attr="items"), args=[]),
        ) if value == name:
            return source.segment(held), f"{source.segment(held)}[{key}]", None
        case (
            ast.Tuple(elts=[ast.Name(id=key), ast.Name(id=value)]),
            ast.Call(func=ast.Name(id="enumerate"), args=[ast.Name() | ast.Attribute() as held]),
        ) if value == name:
            return source.segment(held), f"{source.segment(held)}[{key}]", None
        case ast.Name(id=value), ast.Call(func=ast.Attribute(value=held, attr="values"), args=[]) if value == name:
            text, key = source.segment(held), _free(loop, "key")
            return text, f"{text}[{key}]", (loop.target, f"{key}, {name}", loop.iter, f"{text}.items()")
        case ast.Name(id=value), ast.Name(id=text) if value == name:
            key = _free(loop, "i")
            return text, f"{text}[{key}]", (loop.target, f"{key}, {name}", loop.iter, f"enumerate({text})")
    return None


def _free(loop: _Loop, wanted: str) -> str:
    taken = {n.id for n in ast.walk(loop) if isinstance(n, ast.Name)}
    return wanted if wanted not in taken else f"{wanted}_"


def _is_used_after(source: Source, loop: _Loop, node: ast.Assign, name: str) -> bool:
    """Does anything read the name behind the move, in the loop or behind it?"""
    area = source.function(node) or source.tree
    inside = set(map(id, ast.walk(node)))
    reads = (n for n in ast.walk(area) if isinstance(n, ast.Name) and n.id == name and isinstance(n.ctx, ast.Load))
    end = (node.end_lineno, node.end_col_offset)
    return any(id(n) not in inside and (n.lineno, n.col_offset) >= end and _may_see(source, loop, n) for n in reads)


def _may_see(source: Source, loop: _Loop, node: ast.Name) -> bool:
    """Is it in the loop, or behind it where no other loop or line gives the name a value of its own?"""
    ups = list(source.ancestors(node))
    if loop in ups:
        return True
    others = (up for up in ups if isinstance(up, (ast.For, ast.AsyncFor, ast.ListComp, ast.DictComp, ast.GeneratorExp)))
    return not any(
        isinstance(n, ast.Name) and n.id == node.id and isinstance(n.ctx, ast.Store)
        for other in others
        for n in ast.walk(other)
    )
