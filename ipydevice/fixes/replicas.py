"""What nn.DataParallel does not copy to the other cards."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ipydevice.fixes.context import Context, Proposal
from ipydevice.fixes.names import parameters
from ipydevice.fixes.phrases import spoken, to
from ipydevice.fixes.uses import items_at
from ipydevice.language import say


def kept_on_the_first_card(ctx: Context) -> Iterator[Proposal]:
    """Moved to where the replica computes, which is another card in each: no name outside of the method tells."""
    stray = ctx.stray
    if stray is None or stray.member or not isinstance(stray.site.node, ast.expr):
        return
    site, node = stray.site, stray.site.node
    method = next(iter(ctx.work.functions(site.source, node)), None)
    own = ctx.work.self_name(site)
    inputs = [name for name in parameters(method) if name != own] if method is not None else []
    if own not in parameters(method or node) or not inputs:
        return
    uses = items_at(site) or [node]
    device = f"{inputs[0]}.device"
    draft = ctx.draft(site.source)
    whole = site.source.parent(node)
    if uses == [node] and "[" in stray.attribute and _is_list_of(whole, node) and isinstance(whole, ast.Call):
        draft.replace(whole, f"[t{to(device)} for t in {site.source.segment(node)}]")
    else:
        for use in uses:
            draft.suffix(use, to(device))
    yield Proposal(
        say(
            "move {name} to {device}, which is another in each replica",
            name=site.source.segment(uses[0]),
            device=spoken(device),
        ),
        [draft],
        note=say("a copy in each step; a buffer is copied to the cards with the module"),
    )


def _is_list_of(call: ast.AST | None, node: ast.expr) -> bool:
    """``list(self.bank)``"""
    return isinstance(call, ast.Call) and ast.unparse(call) in (f"{f}({ast.unparse(node)})" for f in ("list", "tuple"))
