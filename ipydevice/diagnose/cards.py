"""Between two cards: which of them is home, and what was sent to the other."""

from __future__ import annotations

import ast
from collections.abc import Set

from ipydevice import launchers, placement
from ipydevice.diagnose import holders, literals
from ipydevice.diagnose.evaluate import value
from ipydevice.diagnose.infer import FACTORIES, call_name, on_the_way
from ipydevice.diagnose.meeting import Candidate
from ipydevice.diagnose.origin import Tracer


def is_home(candidate: Candidate, everyone: list[Candidate]) -> bool:
    """Whether the device that the code names for it is a good one: a card, against the host, or that of a model which
    the line calls.
    """
    others = {other.device for other in everyone} - {candidate.device}
    return "cpu" in others or candidate.device in _called_there(candidate)


def _called_there(candidate: Candidate) -> set[str]:
    """The devices of the modules that are called on the candidate's line."""
    statement = candidate.source.statement(candidate.node)
    calls = [node for node in ast.walk(statement) if isinstance(node, ast.Call)] if statement is not None else []
    called = [value(call.func, candidate.frame.scope) for call in calls]
    return {home for live in called if placement.is_module(live) for home in placement.devices_of(live)}


def is_away_from_models(candidate: Candidate, everyone: list[Candidate], tracer: Tracer) -> bool:
    """Whether all models that the line calls, or else all of the workspace, are wholly on the other card."""
    others = {other.device for other in everyone if other.device != candidate.device}
    models = [live for live in tracer.namespace.values() if placement.is_module(live)]
    homes = _called_there(candidate) or {home for live in models for home in placement.devices_of(live)}
    return homes == others and len(homes) == 1


def is_off_its_card(device: str | None, devices: Set[str | None]) -> bool:
    """Whether one of several processes has something on another's card, beside what is on its own."""
    own = launchers.own_card() if device is not None and ":" in device else None
    if own is None or device is None:
        return False
    kind, _, number = device.partition(":")
    return number != str(own) and f"{kind}:{own}" in devices


def is_sent_by_constant(candidate: Candidate, everyone: list[Candidate], tracer: Tracer) -> bool:
    """Whether what is on the candidate's card got there by the one line that names this card."""
    others = {other.device for other in everyone if other.device != candidate.device}
    if candidate.device is None or len(others) != 1 or is_split(candidate, everyone, tracer):
        return False
    return literals.only_place(candidate.device, others.pop() or "", tracer) is not None


def is_split(candidate: Candidate, everyone: list[Candidate], tracer: Tracer) -> bool:
    """Whether the model that the parameter belongs to lives on the other card too: by design, as a pipeline does."""
    chain = tracer.models.find(candidate.value) or tracer.held.find(candidate.value)
    if not chain or not placement.is_module(chain[0].value):
        return False
    others = {other.device for other in everyone if other.device != candidate.device}
    return any(placement.device_of(tensor) in others for tensor in holders.registered(chain[0].value))


def is_latest(candidate: Candidate, everyone: list[Candidate], tracer: Tracer) -> bool:
    """Whether nothing that it meets was made after it, in the same function: the flow is where the latest value is.

    What a factory makes for the occasion is no part of the flow.
    """
    for step in tracer.trace(candidate.site, candidate.device):
        calls = on_the_way(step.value) if step.value is not None else ()
        if any(call_name(call, tracer.scope(step.site)) in FACTORIES for call in calls):
            return False
    when = when_made(candidate, tracer)
    others = [when_made(other, tracer) for other in everyone if other.device != candidate.device]
    return bool(others) and when > max(others)


def when_made(candidate: Candidate, tracer: Tracer) -> int:
    """The line that made it, where that is in the same function; else 0. Out of a list: the line that put it there."""
    function = candidate.source.function(candidate.node)
    made = 0
    for step in tracer.trace(candidate.site, candidate.device):
        if step.site.source is not candidate.source or candidate.source.function(step.site.node) is not function:
            break
        if step.how not in ("assignment", "item"):
            break
        made = int(getattr(step.site.node, "lineno", 0))
        if step.how == "item":
            break
    return made
