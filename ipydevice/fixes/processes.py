"""What one of several processes gets: the card that is its own by its rank."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ipydevice import launchers
from ipydevice.diagnose.finding import Site
from ipydevice.fixes.context import Context, Proposal
from ipydevice.fixes.names import last_name
from ipydevice.language import say


def on_its_own_card(ctx: Context) -> Iterator[Proposal]:
    """``nn.DataParallel(net)`` in one of several processes gets ``device_ids=[local_rank]``."""
    own = launchers.own_card()
    if own is None or ctx.finding.mismatch.family != "dataparallel":
        return
    for step in ctx.chain:
        for call in ast.walk(step.value) if step.value is not None else ():
            if not (isinstance(call, ast.Call) and last_name(call.func) == "DataParallel"):
                continue
            if len(call.args) != 1 or any(keyword.arg == "device_ids" for keyword in call.keywords):
                continue
            site = Site(step.site.source, call, step.site.frame)
            number = next((name for name, _ in ctx.work.names(site) if is_number_of_card(ctx, site, name)), str(own))
            draft = ctx.draft(site.source)
            text = draft.segment(call)
            draft.replace(call, f"{text[:-1]}, device_ids=[{number}])")
            title = say("give DataParallel the card of this process")
            yield Proposal(title, [draft], note=say("DistributedDataParallel is what several processes are for"))
            return


def is_number_of_card(ctx: Context, site: Site, name: str) -> bool:
    """``local_rank``: a number, called a rank, that is the card of this process."""
    live = ctx.work.value(site, name)
    return "rank" in name.lower() and type(live) is int and live == launchers.own_card()
