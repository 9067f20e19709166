"""Two cards: a value is moved where the parts of a model on different cards meet it."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ipydevice import placement
from ipydevice.diagnose import infer
from ipydevice.diagnose.evaluate import MISSING
from ipydevice.diagnose.finding import Site
from ipydevice.fixes.context import Context, Proposal
from ipydevice.fixes.phrases import spoken
from ipydevice.language import say

_PLAIN = (ast.Name, ast.Attribute, ast.Subscript)


def at_the_seam(ctx: Context) -> Iterator[Proposal]:
    """``shard[ids]`` becomes ``shard[ids.to(shard.device)]`` where a loop goes through shards on several cards."""
    failed = ctx.finding.failed
    area = failed.source.statement(failed.node)
    for node in ast.walk(area if area is not None and not hasattr(area, "body") else failed.node):
        for part, met in _pairs(ctx, node):
            if not _one_of_several(ctx, met):
                continue
            code = _device_of(ctx, met)
            draft = ctx.draft(failed.source)
            draft.suffix(part, f".to({code})")
            title = say(
                "move {name} to {device}, where the two meet", name=failed.source.segment(part), device=spoken(code)
            )
            yield Proposal(title, [draft], note=say("moves nothing where they are on one card already"))
            return


def _pairs(ctx: Context, node: ast.AST) -> Iterator[tuple[ast.expr, ast.expr]]:
    """(what has to move, the tensor or module that it meets) in an indexing or a call of a module."""
    match node:
        case ast.Subscript(value=met, slice=index) if isinstance(node.ctx, ast.Load):
            parts = index.elts if isinstance(index, ast.Tuple) else [index]
        case ast.Call(func=met, args=parts) if placement.is_module(_live(ctx, met)):
            pass
        case _:
            return
    home = _home(ctx, met)
    scope = ctx.scope(ctx.finding.failed)
    for part in parts:
        there = infer.device(part, scope)
        if home is not None and there not in (None, home) and ctx.stray is not None and there == ctx.stray.device:
            yield part, met


def _live(ctx: Context, node: ast.expr) -> object:
    failed = ctx.finding.failed
    return ctx.value(Site(failed.source, node, failed.frame)) if isinstance(node, _PLAIN) else MISSING


def _home(ctx: Context, met: ast.expr) -> str | None:
    """The card of a tensor, or of all of a module."""
    live = _live(ctx, met)
    if placement.is_tensor(live):
        return placement.device_of(live)
    held = placement.devices_of(live) if placement.is_module(live) else ()
    return held[0] if len(held) == 1 else None


def _one_of_several(ctx: Context, met: ast.expr) -> bool:
    """Is it one item of many, handed out by a loop or by its number, that are on several devices?"""
    source = ctx.finding.failed.source
    if isinstance(met, ast.Subscript):
        held = _live(ctx, met.value)
        return held is not MISSING and len(placement.devices_of(held)) > 1
    if not isinstance(met, ast.Name):
        return False
    for up in source.ancestors(met):
        loops = getattr(up, "generators", [up] if isinstance(up, (ast.For, ast.AsyncFor)) else [])
        if any(met.id in _targets(loop.target) for loop in loops):
            return True
    return False


def _targets(target: ast.AST) -> set[str]:
    return {n.id for n in ast.walk(target) if isinstance(n, ast.Name)}


def _device_of(ctx: Context, met: ast.expr) -> str:
    text = ctx.finding.failed.source.segment(met)
    return f"{text}.device" if placement.is_tensor(_live(ctx, met)) else f"next({text}.parameters()).device"
