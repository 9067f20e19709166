"""Graphs recorded on another device than they run on: recorded anew, where they will run."""

from __future__ import annotations

from collections.abc import Iterator

from ipydevice import placement
from ipydevice.diagnose.evaluate import MISSING
from ipydevice.diagnose.finding import Site
from ipydevice.diagnose.recorded import recordings
from ipydevice.fixes.context import Context, Proposal
from ipydevice.fixes.phrases import spoken, to
from ipydevice.language import say


def recorded_where_it_runs(ctx: Context) -> Iterator[Proposal]:
    """``torch.fx.symbolic_trace(net)`` becomes ``torch.fx.symbolic_trace(net.to(device))``; examples move along."""
    for step in reversed(ctx.chain):
        for call in recordings(step.value) if step.value is not None else ():
            site = Site(step.site.source, call, step.site.frame)
            device = ctx.device(site)
            if device is None:
                continue
            draft = ctx.draft(site.source)
            for given in call.args:
                live = ctx.value(site, given)
                if live is MISSING or placement.is_module(live) or placement.is_tensor(live):
                    draft.suffix(given, to(device))
            title = say("record {name} on {device}", name=site.source.segment(call.args[0]), device=spoken(device))
            yield Proposal(title, [draft], note=say("what is a constant of the graph stays where it was recorded"))
            return
