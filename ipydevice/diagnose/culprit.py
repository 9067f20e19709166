"""Which of the things that met is on the wrong device, and what the user calls it.

The message does not tell: it names the first argument that differs from the first one.
So every candidate is weighed by facts (`weigh`): where the module it belongs to lives,
whether ``.to()`` can reach it, whether somebody moved it on purpose, what the rule of the
call is.  Then it is followed outwards to the user's own name for it (`climb`).
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

from ipydevice import placement
from ipydevice.diagnose import climb, gone, holders, results, weigh
from ipydevice.diagnose.evaluate import MISSING, value
from ipydevice.diagnose.finding import Site, Step
from ipydevice.diagnose.frames import Frame
from ipydevice.diagnose.meeting import Candidate, anywhere, candidates, fill_by_elimination, library_operands
from ipydevice.diagnose.origin import Tracer
from ipydevice.messages import Mismatch

HOST = "cpu"


@dataclass
class Choice:
    """The stray and what speaks for it."""

    stray: Candidate | None = None
    other: Candidate | None = None
    met: list[Candidate] = field(default_factory=list)  # on the failing line
    chain: list[Step] = field(default_factory=list)
    evidence: list[str] = field(default_factory=list)
    role: str = ""  # the stray's part in the failing call
    margin: float = 0.0  # how far the stray's weight is above the best of the other side
    host_required: bool = False
    taken: Candidate | None = None  # the stray as it stands on the failing line


Settled = Callable[[Candidate], bool]  # whether it is known to be stray, and another mistake is looked for


def choose(frames: list[Frame], mismatch: Mismatch, tracer: Tracer, settled: Settled | None = None) -> Choice:
    """Find the stray among what met in the innermost frame of the user's, then follow it outwards."""
    users = [frame for frame in frames if frame.is_user]
    if not users or mismatch.kind == "availability":
        return Choice()
    frame = users[-1]
    at = frames.index(frame)
    below = frames[at + 1] if at + 1 < len(frames) else None
    met = fill_by_elimination(candidates(frame, below), mismatch.devices)
    met = [results.seen_through(candidate, tracer, mismatch) for candidate in met]
    inside = library_operands(frames[at + 1 :])
    if not any(candidate.device for candidate in met):
        met = anywhere(frame, inside)
    choice = Choice(met=met)
    sides = _sides([c for c in met if settled is None or not settled(c)], inside, mismatch)
    if mismatch.family == "numpy" or mismatch.host_required:
        _choose_for_host(choice, mismatch, below)
    elif mismatch.family == "generator":
        _choose_generator(choice, met, frame, mismatch)
    elif len(sides) > 1:
        _weigh(choice, sides, mismatch, tracer)
    elif sides and not _choose_gone(choice, users, mismatch, sides, tracer):
        _choose_only_side(choice, sides, mismatch)
    if choice.stray is not None:
        choice.role = choice.stray.role
        choice.taken = choice.stray
        choice.stray = _model_asked(choice.stray, tracer) or choice.stray
        choice.stray = climb.outwards(choice.stray, frames, tracer, to_its_source=not choice.host_required)
        choice.stray = _model_asked(choice.stray, tracer) or choice.stray
        choice.chain = _chain(choice.stray, tracer)
        if choice.role == gone.LET_GO and isinstance(choice.stray.node, ast.Attribute):
            choice.chain = gone.origin(choice.stray.node.attr, tracer)
    return choice


def _model_asked(stray: Candidate, tracer: Tracer) -> Candidate | None:
    """The model that sent the stray astray: ``x.to(next(model.parameters()).device)``, and that is split or unmoved."""
    if stray.via in ("parameter", "buffer", "module") or stray.device is None:
        return None
    steps = [(step.value, step.site) for step in tracer.trace(stray.site, stray.device) if step.value is not None]
    for expr, site in [(stray.node, stray.site), *steps]:
        for node, at in _with_devices(expr, site, tracer):
            match node:
                case ast.Call(
                    func=ast.Name(id="next"),
                    args=[ast.Call(func=ast.Attribute(value=model, attr="parameters" | "buffers")), *_],
                ):
                    live = value(model, tracer.scope(at))
                    frame = next((f for f in tracer.frames if f.frame is at.frame), stray.frame)
                    text = None if frame.source is at.source else at.source
                    found = _minority(live, stray.device)
                    if found is not None:
                        return Candidate(
                            frame, model, "", stray.device, found.path, found.value, True, found.via or "",
                            found.owner, found.attribute, live, elsewhere=text,
                        )  # fmt: skip
                    if stray.device == HOST and placement.is_module(live) and holders.wholly_on(live, HOST):
                        return Candidate(frame, model, "", HOST, value=live, known=True, via="module", elsewhere=text)
    return None


def _with_devices(expr: ast.expr, site: Site, tracer: Tracer) -> Iterator[tuple[ast.AST, Site]]:
    """The nodes of an expression, and of what the devices in it were made of: ``dev`` of ``x.to(dev)``."""
    for node in ast.walk(expr):
        yield node, site
        match node:
            case ast.Call(func=ast.Attribute(attr="to"), args=[ast.Name() | ast.Attribute() as told, *_]):
                for step in tracer.trace(Site(site.source, told, site.frame)):
                    if step.value is not None:
                        yield from ((part, step.site) for part in ast.walk(step.value))


def _minority(model: object, device: str | None) -> placement.Found | None:
    """A parameter of a model on `device`, where most of them are elsewhere."""
    if not placement.is_module(model):
        return None
    found = [f for f in placement.walk(model, limit=3000) if f.via in ("parameter", "buffer")]
    mine = [f for f in found if placement.device_of(f.value) == device]
    return mine[0] if mine and 2 * len(mine) < len(found) else None


def _chain(stray: Candidate, tracer: Tracer) -> list[Step]:
    """Where the stray came from: for a member of an object where it was put there, else how the object was made."""
    key = re.search(r"\.keywords\['(\w+)'\]$", stray.member)
    if key is not None:
        given = tracer.keyword_of_partial(key.group(1))
        if given is not None:
            return [
                Step("closure", *given),
                *tracer.trace(Site(given[0].source, given[1], given[0].frame), stray.device),
            ]
    put = _put_into_module(stray, tracer)
    if put is not None:
        return [put]
    if stray.member and stray.known and stray.via not in ("parameter", "buffer"):
        chain = holders.along(stray.root, "", stray.member)
        at = next((i for i in range(len(chain) - 2, -1, -1) if not holders.is_container(chain[i].value)), None)
        if at is not None:
            name = chain[at + 1].path.removeprefix(chain[at].path).lstrip(".").split("[")[0].split(".")[0]
            step = tracer.of_attribute_of(chain[at].value, name) if name else None
            if step is not None:
                rest = Site(step.site.source, step.value, step.site.frame) if step.value is not None else None
                return [step, *(tracer.trace(rest, stray.device) if rest is not None else [])]
    return tracer.trace(stray.site, stray.device)


def _put_into_module(stray: Candidate, tracer: Tracer) -> Step | None:
    """Where a cell put a layer into a model that was there: ``net[2] = head``, ``layers.append(layer)``."""
    chain = tracer.model_around(stray.value) if placement.is_module(stray.value) else []
    for outer, inner in reversed(list(pairwise(chain))):
        name = inner.path.removeprefix(outer.path).strip(".[]'\"")
        step = tracer.of_attribute_of(outer.value, name) if inner.via == "module" else None
        if step is not None and step.site.source.class_of(step.site.node) is None:
            return step
    return None


def _sides(met: list[Candidate], inside: list[tuple[str, Any]], mismatch: Mismatch) -> dict[str, list[Candidate]]:
    """Candidates by device; where the library's frame shows exactly which tensors met, only these."""
    devices = [name for name in mismatch.devices if name] or []
    if not devices:
        devices = list(dict.fromkeys(placement.device_of(tensor) for _, tensor in inside))
    exact = {id(c) for c in met if c.known and any(placement.same(c.value, tensor) for _, tensor in inside)}
    sides: dict[str, list[Candidate]] = {}
    for candidate in met:
        if candidate.device is None or (len(devices) > 1 and not _is_among(candidate.device, devices)):
            continue
        sides.setdefault(candidate.device, []).append(candidate)
    for name, side in sides.items():
        matched = [candidate for candidate in side if id(candidate) in exact]
        if matched:
            sides[name] = matched
        else:  # of a whole module one tensor will do
            sides[name] = [c for i, c in enumerate(side) if not c.member or c.node is not side[i - 1].node or i == 0]
    return sides


def _is_among(device: str, devices: list[str]) -> bool:
    """Texts may leave out the index: "cuda" means any card."""
    return any(device == name or (":" not in name and device.split(":")[0] == name) for name in devices)


def _choose_for_host(choice: Choice, mismatch: Mismatch, below: Frame | None) -> None:
    """A rule wants the host: numpy, ``lengths``. The stray is what is not there."""
    away = [candidate for candidate in choice.met if candidate.device not in (None, HOST)]
    if not away:
        return
    named = below.frame.f_locals.get(mismatch.host_required or "") if below is not None else None
    fitting = [c for c in away if c.known and placement.is_tensor(named) and placement.same(c.value, named)]
    fitting = fitting or [c for c in away if c.role == mismatch.host_required]
    if not fitting and mismatch.family != "numpy":  # a builtin has no frame: lengths, sizes and positions are integers
        fitting = [c for c in away if c.known and (placement.dtype_of(c.value) or "").startswith("int")] or away[1:]
    found = (fitting or away)[0]
    if found.within is not None:
        found = replace(found, node=found.within, member="", known=False, value=None, result=True, within=None)
    choice.stray = found
    choice.host_required = True
    choice.margin = 10.0


def _choose_generator(choice: Choice, met: list[Candidate], frame: Frame, mismatch: Mismatch) -> None:
    for candidate in met:
        if candidate.known and not placement.is_tensor(candidate.value):
            choice.stray = candidate
            choice.other = next((c for c in met if c is not candidate), None)
            choice.margin = 1.0  # the generator, or the call that names no device
            return
    device = mismatch.argument_device or (mismatch.devices[-1] if mismatch.devices else None)
    inside = [part for part in ast.walk(frame.node) if isinstance(part, ast.expr)] if frame.node is not None else []
    for expr in inside:  # a sampler that draws with torch's own generator
        live = value(expr, frame.scope)
        if live is not MISSING and placement.module_name(type(live)).startswith("torch.utils.data"):
            choice.stray = Candidate(frame, expr, "value", device, value=live, known=True)
            return
    call = next((part for part in inside if isinstance(part, ast.Call)), None)
    if call is not None:  # what it calls draws with torch's own generator
        choice.stray = Candidate(frame, call, "value", device, result=True)


def _choose_gone(
    choice: Choice, users: list[Frame], mismatch: Mismatch, sides: dict[str, list[Candidate]], tracer: Tracer
) -> bool:
    """A ``with`` around the call has changed something back since, and nothing of one side is left."""
    devices = [device for device in mismatch.devices if not any(_is_among(seen, [device]) for seen in sides)]
    found = (
        gone.put_back(users, devices[0]) or gone.let_go(users[-1], devices[0], tracer) if len(devices) == 1 else None
    )
    if found is None:
        return False
    choice.stray, choice.evidence, choice.margin = found.stray, [found.fact], 0.5
    choice.other = next((c for side in sides.values() for c in side), None)
    return True


def _choose_only_side(choice: Choice, sides: dict[str, list[Candidate]], mismatch: Mismatch) -> None:
    """Only one side can be seen: it is the stray unless it is where everything belongs."""
    device, side = next(iter(sides.items()))
    on_host = [c for c in side if c.device == HOST or c.device == "meta"]
    choice.stray = (on_host or side)[0]
    choice.margin = 1.0 if device == HOST else 0.5


def _weigh(choice: Choice, sides: dict[str, list[Candidate]], mismatch: Mismatch, tracer: Tracer) -> None:
    weighed: list[tuple[float, int, Candidate, list[str]]] = []
    everyone = [candidate for side in sides.values() for candidate in side]
    for position, candidate in enumerate(everyone):
        weight, facts = weigh.weight(candidate, everyone, mismatch, tracer)
        weighed.append((weight, -position, candidate, facts))
    weight, _, stray, facts = max(weighed, key=lambda item: item[:2])
    against = [item for item in weighed if item[2].device != stray.device]
    best_other = max(against, key=lambda item: (not item[2].member, -item[0], item[1])) if against else None
    choice.stray = stray
    choice.evidence = facts
    if best_other is not None:
        choice.other = best_other[2]
        choice.margin = weight - max(item[0] for item in against)
        choice.evidence = (facts + weigh.facts_of_other(best_other[2]))[:3]
