"""From a finding to code that a careful colleague would write, and how to put it into a notebook."""

from __future__ import annotations

from collections.abc import Iterator

from ipydevice.diagnose.finding import Finding
from ipydevice.diagnosis import Fix
from ipydevice.fixes.apply import apply
from ipydevice.fixes.by_cause import BY_CAUSE, anything
from ipydevice.fixes.context import Context, Proposal
from ipydevice.fixes.guards import guard

__all__ = ["apply", "propose"]

MOST = 5


def propose(finding: Finding) -> list[Fix]:
    """Ways to mend it, the best first, at most about five; empty where none is known."""
    ctx = Context(finding)
    found: list[Fix] = []
    seen: set[tuple[str, ...]] = set()
    repairs: list[Fix] = []
    for proposal in _proposals(ctx):
        for fix in ctx.fixes(proposal):
            key = (*(edit.after for edit in fix.edits), fix.setup or "")
            if key in seen:
                continue
            seen.add(key)
            # A repair stands behind the edits unless its own edit would lose work.
            (found if fix.kind != "repair" or not found else repairs).append(fix)
        if len(found) >= MOST:
            break
    found = [*found[:3], *repairs[:1], *found[3:]][:MOST]
    early = guard(ctx) if found else None
    return [*found[: MOST - 1], early] if early is not None else found


def _proposals(ctx: Context) -> Iterator[Proposal]:
    repairs = list(BY_CAUSE.get(ctx.finding.cause, ()))
    if ctx.finding.cause not in ("meta_not_materialized", "no_accelerator"):
        repairs.append(anything)
    for repair in repairs:
        ctx.guessed = False
        for proposal in repair(ctx):
            proposal.certain = proposal.certain and not ctx.guessed
            yield proposal
            ctx.guessed = False
