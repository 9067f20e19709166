"""Errors inside a recorded graph, whose constants and devices stay as they were when it was recorded.

``torch.fx.symbolic_trace`` writes ``x.to(self.device)`` down as ``x.to(device(type='cpu'))``, ``torch.jit.trace`` and
``torch.jit.freeze`` keep tensors as constants of the graph: moving the module afterwards reaches none of them.
"""

from __future__ import annotations

import ast
from typing import Any

from ipydevice import placement
from ipydevice.diagnose import holders
from ipydevice.diagnose.culprit import Choice
from ipydevice.diagnose.finding import Site, Step
from ipydevice.diagnose.frames import GENERATED, Frame
from ipydevice.diagnose.infer import with_index
from ipydevice.diagnose.meeting import Candidate, candidates
from ipydevice.diagnose.origin import LONGEST, Tracer
from ipydevice.language import say
from ipydevice.messages import Mismatch
from ipydevice.placement.kinds import is_a

ROLE = "graph"
RECORDERS = frozenset(("symbolic_trace", "trace", "trace_module", "script", "freeze", "export"))


def choose(frames: list[Frame], mismatch: Mismatch, tracer: Tracer) -> Choice | None:
    """The graph, where nothing that went in and none of its parameters is on the device that the message names."""
    graph = _running(frames, mismatch)
    frame = [frame for frame in frames if frame.is_user][-1]
    call = frame.node
    if graph is None or not isinstance(call, ast.Call):
        return None
    below = frames[frames.index(frame) + 1]
    given = [c for c in candidates(frame, below) if c.role not in ("callee", "receiver")]
    known = {placement.device_of(tensor) for tensor in holders.registered(graph)} | {c.device for c in given}
    away = next((with_index(name) for name in mismatch.devices if with_index(name) not in known), None)
    home = next((with_index(name) for name in mismatch.devices if with_index(name) in known), None)
    if away is None or home is None:
        return None
    stray = Candidate(frame, call.func, "callee", away, value=graph, known=True, via="module")
    steps = _to_the_recording(Site(frame.source, call.func, frame.frame), tracer) if frame.source is not None else []
    fact = say(
        "all that went in and all parameters are on {home}: {device} was recorded with the graph",
        home=home,
        device=away,
    )
    return Choice(stray, next((c for c in given if c.device == home), None), [stray, *given], steps, [fact], ROLE, 1.0)


def _to_the_recording(site: Site, tracer: Tracer) -> list[Step]:
    """The steps from the graph outwards, also behind what moved it: ``graph.to(device).eval()``."""
    steps: list[Step] = []
    here: Site | None = site
    while here is not None and len(steps) < LONGEST:
        inner, at = _receiver(here.node), here
        for step in tracer.trace(here) if inner is None else ():
            steps.append(step)
            inner, at = _receiver(step.value), step.site
            if inner is not None:  # behind a move the tracer would follow the device that is moved to
                break
        here = Site(at.source, inner, at.frame) if inner is not None else None
    made = next((i for i, step in enumerate(steps) if step.value is not None and recordings(step.value)), len(steps))
    return steps[: made + 1]


def _receiver(node: ast.AST | None) -> ast.expr | None:
    """``graph`` of ``graph.to(device).eval()``"""
    receiver: ast.expr | None = None
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _SAME:
        receiver = node = node.func.value
    return receiver


_SAME = ("to", "cuda", "cpu", "eval", "train", "requires_grad_")


def recordings(node: ast.AST) -> list[ast.Call]:
    """The calls in an expression that record a graph: ``torch.jit.trace(net, x)``."""
    return [
        part
        for part in ast.walk(node)
        if isinstance(part, ast.Call)
        and (part.func.attr if isinstance(part.func, ast.Attribute) else getattr(part.func, "id", "")) in RECORDERS
        and part.args
    ]


def _running(frames: list[Frame], mismatch: Mismatch) -> Any:
    """The module whose recorded code was running below the user's line."""
    for frame in reversed(frames):
        if frame.is_user:
            return None
        me = frame.frame.f_locals.get("self")
        recorded = frame.file.startswith(GENERATED) or (is_a(me, "script") and "TorchScript" in mismatch.text)
        if recorded and placement.is_module(me):
            return me
    return None
