"""From a finding to code that a careful colleague would write, and how to put it into a notebook."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator

from ipydevice.diagnose.finding import Finding
from ipydevice.diagnosis import Fix
from ipydevice.fixes.apply import apply
from ipydevice.fixes.by_cause import BY_CAUSE, WHATEVER, anything
from ipydevice.fixes.context import Context, Proposal
from ipydevice.fixes.guards import guard
from ipydevice.fixes.reborn import built_again

__all__ = ["apply", "propose"]

MOST = 5
# Where weights or the accelerator are missing, a graph was recorded elsewhere, or each replica has its own card, a move
# would only lead to the next error.
_NO_MOVE = ("meta_not_materialized", "no_accelerator", "dp_replica_state", "traced_constant")


def propose(finding: Finding) -> list[Fix]:
    """Ways to mend it, the best first, at most about five; empty where none is known."""
    ctx = Context(finding)
    found: list[Fix] = []
    repairs: list[Fix] = []
    seen: set[tuple[str, ...]] = set()
    for fix in _fixes(ctx):
        key = (*(edit.after for edit in fix.edits), fix.setup or "", *(() if fix.edits else (fix.title,)))
        if key in seen:
            continue
        seen.add(key)
        # A repair stands behind the edits unless its own edit would lose work.
        (found if fix.kind != "repair" or not found else repairs).append(fix)
        if len(found) >= MOST:
            break
    found.sort(key=lambda fix: any(fix is costly for costly in ctx.costly))  # stable: else the order stays
    found = [*found[:3], *repairs[:1], *found[3:]][:MOST]
    early = guard(ctx) if found else None
    return [*found[: MOST - 1], early] if early is not None else found


def _fixes(ctx: Context) -> Iterator[Fix]:
    repairs: list[Callable[[Context], Iterator[Proposal]]] = [*WHATEVER, *BY_CAUSE.get(ctx.finding.cause, ())]
    if any(True for _ in built_again(ctx)):
        repairs = [built_again]  # other edits would be of a class that nothing uses any more
    elif ctx.finding.cause not in _NO_MOVE:
        repairs.append(anything)
    for repair in repairs:
        try:
            for proposal in _proposed(ctx, repair):
                yield from ctx.fixes(proposal)
        except Exception:
            if os.environ.get("IPYDEVICE_DEBUG"):
                raise


def _proposed(ctx: Context, repair: Callable[[Context], Iterator[Proposal]]) -> Iterator[Proposal]:
    """A repair's proposals; a device told by its name alone makes one uncertain."""
    ctx.guessed = False
    for proposal in repair(ctx):
        proposal.certain = proposal.certain and not ctx.guessed
        yield proposal
        ctx.guessed = False
