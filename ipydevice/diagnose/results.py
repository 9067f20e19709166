"""What the result of a call is, where nobody has kept it: looked for in the text of the function that gave it."""

from __future__ import annotations

import ast
from dataclasses import replace
from types import MethodType

from ipydevice import placement
from ipydevice.diagnose import bindings, holders
from ipydevice.diagnose.evaluate import MISSING, Scope, value
from ipydevice.diagnose.finding import Site
from ipydevice.diagnose.infer import FACTORIES, call_name, device, keyword
from ipydevice.diagnose.meeting import Candidate, view_of
from ipydevice.diagnose.origin import Tracer
from ipydevice.diagnose.source import FunctionNode
from ipydevice.messages import Mismatch

HOST = "cpu"


def seen_through(candidate: Candidate, tracer: Tracer, mismatch: Mismatch) -> Candidate:
    """The result of a function that returns something it keeps is that thing: ``self.anchors(n)``."""
    node = candidate.node.elt if isinstance(candidate.node, (ast.ListComp, ast.GeneratorExp)) else candidate.node
    node = node.operand if isinstance(node, ast.UnaryOp) else node
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("tuple", "list"):
        node = node.args[0] if len(node.args) == 1 else node  # of a generator, which is used up now
    if isinstance(node, ast.Attribute):
        return _of_property(candidate, node, tracer)
    if not candidate.result or candidate.known:
        return candidate
    if isinstance(node, ast.BinOp):
        return _made_in(candidate, node, tracer)
    if not isinstance(node, ast.Call):
        return candidate
    function = value(node.func, candidate.frame.scope)
    text = tracer.function_text(function)
    if text is None:
        return candidate
    bound = {"self": function.__self__} if type(function) is MethodType else {}
    scope = Scope(bound, candidate.frame.frame.f_globals)
    wanted = [candidate.device] if candidate.device is not None else [d for d in mismatch.devices if d == HOST]
    for returned in bindings.returns(text[1]):
        given = _argument_returned(returned, node, text[1], bool(bound))
        where = device(given, candidate.frame.scope) if given is not None else None
        if given is not None and where is not None:
            live = value(given, candidate.frame.scope)
            known = placement.is_tensor(live)
            return replace(candidate, node=given, device=where, value=live if known else None, known=known)
        item = _item_returned(candidate, returned, given, node, text[1], scope) if given is not None else None
        if item is not None and item.device in wanted:
            return item
        kept = value(view_of(returned, scope), scope)
        if kept is MISSING or kept is bound.get("self", MISSING):
            continue
        for found in placement.walk(kept, limit=100):
            if placement.device_of(found.value) in wanted:
                return replace(candidate, value=found.value, known=True, device=placement.device_of(found.value))
    return candidate


def _made_in(candidate: Candidate, node: ast.BinOp, tracer: Tracer) -> Candidate:
    """``noise(x)`` of ``scale(t) * noise(x)``: of two results the one that a factory made, without a device."""
    made = []
    for side in (node.left, node.right):
        site = Site(candidate.source, side, candidate.frame.frame)
        ends = [(side, site), *((s.value, s.site) for s in tracer.trace(site, candidate.device) if s.value is not None)]
        calls = [(call, at) for expr, at in ends for call in ast.walk(expr) if isinstance(call, ast.Call)]
        if any(
            call_name(call, tracer.scope(at)) in FACTORIES and keyword(call, "device") is None for call, at in calls
        ):
            made.append(side)
    if len(made) != 1 or candidate.device != HOST:
        return candidate
    return replace(candidate, node=made[0])


def _of_property(candidate: Candidate, node: ast.Attribute, tracer: Tracer) -> Candidate:
    """A property that gives what its module keeps is that; what it computes from registered tensors is where those are.

    ``self._graph``, ``self._log_scale.exp()``
    """
    owner = value(node.value, candidate.frame.scope)
    if not placement.is_module(owner) or value(node, candidate.frame.scope) is not MISSING:
        return candidate
    step = tracer.of_property(candidate.site, owner, node.attr)
    if step is None or step.value is None:
        return candidate
    scope = Scope({"self": owner}, candidate.frame.frame.f_globals)
    kept = value(view_of(step.value, scope), scope)
    for member in placement.members(owner) if placement.is_tensor(kept) else ():
        if member.value is kept:
            return replace(
                candidate, device=placement.device_of(kept), value=kept, known=True, result=False, via=member.via,
                owner=owner, attribute=member.path.removeprefix("."),
            )  # fmt: skip
    read = [value(part, scope) for part in ast.walk(step.value) if isinstance(part, ast.Attribute)]
    tensors = [live for live in read if placement.is_tensor(live)]
    ways = {member.via for member in placement.members(owner) if any(member.value is tensor for tensor in tensors)}
    if len(tensors) == 0 or not ways <= {"parameter", "buffer"} or not ways:
        return candidate
    return replace(candidate, via=ways.pop(), device=placement.device_of(tensors[0]))


def _item_returned(
    candidate: Candidate, returned: ast.expr, given: ast.expr, call: ast.Call, function: FunctionNode, scope: Scope
) -> Candidate | None:
    """What a function takes out of a container that it is given: ``yield bank[task].expand(n, -1)``."""
    bound = bool(scope.names)
    here = candidate.frame.scope
    passed = {name: bindings.argument_for(call, function, name, bound) for name in bindings.parameters(function)}
    names = {name: value(expr, here) for name, expr in passed.items() if expr is not None}
    inside = Scope({**scope.names, **names}, scope.outer)
    tensor, holder = value(view_of(returned, inside), inside), value(given, here)
    if not placement.is_tensor(tensor) or not holders.is_container(holder):
        return None
    path = next((found.path for found in placement.walk(holder) if found.value is tensor), "")
    if not path:
        return None
    return replace(
        candidate, node=given, device=placement.device_of(tensor), member=path, root=holder, value=tensor, known=True,
        result=False, via="item",
    )  # fmt: skip


def _argument_returned(returned: ast.expr, call: ast.Call, function: FunctionNode, bound: bool) -> ast.expr | None:
    """The argument that a function gives back in another shape: ``memory`` of ``self.split(memory)``."""
    root = returned
    while isinstance(root, (ast.Attribute, ast.Subscript, ast.Call)):
        if isinstance(root, ast.Call) and not isinstance(root.func, ast.Attribute):
            return None
        root = root.func if isinstance(root, ast.Call) else root.value
    if (
        not isinstance(root, ast.Name)
        or root.id not in bindings.parameters(function)
        or bindings.of_name(function, root.id)
    ):
        return None
    return bindings.argument_for(call, function, root.id, bound)
