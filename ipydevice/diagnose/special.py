"""Errors whose stray is in no operand of the line: optimizer state, gradients of a custom Function."""

from __future__ import annotations

import ast
import re
from typing import Any

from ipydevice import placement
from ipydevice.diagnose import bindings, holders
from ipydevice.diagnose.culprit import Choice
from ipydevice.diagnose.evaluate import MISSING, value
from ipydevice.diagnose.finding import Site, Step
from ipydevice.diagnose.frames import Frame
from ipydevice.diagnose.meeting import Candidate
from ipydevice.diagnose.origin import Tracer
from ipydevice.messages import Mismatch


def choose(frames: list[Frame], mismatch: Mismatch, tracer: Tracer) -> Choice | None:
    """The choice for one of the special errors; None when it is an ordinary one."""
    if not frames or frames[-1].is_user:
        return None
    optimizer = _optimizer_in(frames)
    if optimizer is not None:
        return _optimizer(frames, optimizer, tracer)
    function = re.search(r"Function (\w+?)Backward returned an invalid gradient", mismatch.text)
    if function is not None:
        return _custom_function(frames, function.group(1), mismatch, tracer)
    return None


def _optimizer_in(frames: list[Frame]) -> Any:
    """The optimizer whose step() is running in a library frame below the user's."""
    for frame in reversed(frames):
        if frame.is_user:
            return None
        me = frame.frame.f_locals.get("self")
        if placement.is_optimizer(me):
            return me
    return None


def _optimizer(frames: list[Frame], optimizer: Any, tracer: Tracer) -> Choice | None:
    frame = [frame for frame in frames if frame.is_user][-1]
    assert frame.source is not None
    call = frame.node if isinstance(frame.node, ast.Call) else None
    if call is None or not isinstance(call.func, ast.Attribute):
        return None
    node = call.func.value if value(call.func.value, frame.scope) is optimizer else _name_of(optimizer, frame)
    if node is None:
        return None
    for member in placement.members(optimizer):
        if member.via != "state" or not placement.is_tensor(member.key):
            continue
        home = placement.device_of(member.key)
        for inner in placement.members(member.value):
            if inner.path == "['step']" or not placement.is_tensor(inner.value):
                continue
            away = placement.device_of(inner.value)
            if away == home:
                continue
            parameter = _parameter_name(member.key, tracer) or "p"
            stray = Candidate(
                frame, node, "receiver", away, f".state[{parameter}]{inner.path}", inner.value, True, "state",
                optimizer, f"state[{parameter}]{inner.path}", optimizer,
            )  # fmt: skip
            other = Candidate(frame, node, "receiver", home, value=member.key, known=True, via="parameter")
            return Choice(
                stray,
                other,
                [stray],
                tracer.trace(Site(frame.source, node, frame.frame)),
                evidence=[f"the parameter {parameter} is on {home}, its {inner.path} in the state is on {away}"],
                margin=10.0,
            )
    return None


def _name_of(optimizer: Any, frame: Frame) -> ast.expr | None:
    for name, live in dict.items(frame.frame.f_locals):
        if live is optimizer and frame.source is not None:
            return next((n for n in ast.walk(frame.source.tree) if isinstance(n, ast.Name) and n.id == name), None)
    return None


def _parameter_name(parameter: Any, tracer: Tracer) -> str | None:
    chain = holders.find(parameter, [(n, live) for n, live in tracer.namespace.items() if placement.is_module(live)])
    return chain[-1].path if chain else None


def _custom_function(frames: list[Frame], name: str, mismatch: Mismatch, tracer: Tracer) -> Choice | None:
    """A user's autograd Function whose backward returned a gradient on the wrong device."""
    frame = [frame for frame in frames if frame.is_user][-1]
    for source in reversed(tracer.sources.all_cells()):
        for node in ast.walk(source.tree):
            if not (isinstance(node, ast.ClassDef) and node.name == name):
                continue
            backward = next((f for f in node.body if isinstance(f, ast.FunctionDef) and f.name == "backward"), None)
            returned = bindings.returns(backward) if backward is not None else []
            if not returned:
                return None
            expr = returned[-1]
            index = re.search(r"at index (\d+)", mismatch.text)
            if isinstance(expr, ast.Tuple) and index and int(index.group(1)) < len(expr.elts):
                expr = expr.elts[int(index.group(1))]
            home = Frame(frame.frame, expr.lineno, None, "cell", frame.file, frame.function, source)
            device = mismatch.argument_device or (mismatch.devices[-1] if mismatch.devices else None)
            stray = Candidate(home, expr, "value", device, result=True)
            met = Candidate(home, expr, "value", mismatch.reference_device or mismatch.devices[0] if mismatch.devices else None)
            steps: list[Step] = tracer.trace(Site(source, expr, None), device)
            return Choice(stray, met, [stray], steps, evidence=[f"{name}.backward returns it"], margin=5.0)
    return None


__all__ = ["MISSING", "choose"]
