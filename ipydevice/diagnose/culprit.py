"""Which of the things that met is on the wrong device, and what the user calls it.

The message does not tell: it names the first argument that differs from the first one.
So every candidate is weighed by facts: where the module it belongs to lives, whether
``.to()`` can reach it, whether somebody moved it on purpose, what the rule of the call is.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, field, replace
from types import MethodType
from typing import Any

from ipydevice import placement
from ipydevice.diagnose import bindings, holders
from ipydevice.diagnose.evaluate import FACTORIES, MISSING, Scope, call_name, keyword, moved_to, value
from ipydevice.diagnose.finding import Site, Step
from ipydevice.diagnose.frames import COMPREHENSIONS, Frame
from ipydevice.diagnose.meeting import Candidate, candidates, fill_by_elimination, library_operands, view_of
from ipydevice.diagnose.origin import Tracer
from ipydevice.messages import Mismatch

HOST = "cpu"
_BY_RULE = "an index has to be on the host or with the tensor that it selects from"


@dataclass
class Choice:
    """The stray and what speaks for it."""

    stray: Candidate | None = None
    other: Candidate | None = None
    met: list[Candidate] = field(default_factory=list)  # on the failing line
    chain: list[Step] = field(default_factory=list)
    module: Any = None  # the stray is this whole module
    evidence: list[str] = field(default_factory=list)
    margin: float = 0.0  # how far the stray's weight is above the best of the other side
    host_required: bool = False


def choose(frames: list[Frame], mismatch: Mismatch, tracer: Tracer) -> Choice:
    """Find the stray among what met in the innermost frame of the user's, then follow it outwards."""
    users = [frame for frame in frames if frame.is_user]
    if not users:
        return Choice()
    frame = users[-1]
    at = frames.index(frame)
    below = frames[at + 1] if at + 1 < len(frames) else None
    met = fill_by_elimination(candidates(frame, below), mismatch.devices)
    met = [_seen_through(candidate, tracer) for candidate in met]
    inside = library_operands(frames[at + 1 :])
    choice = Choice(met=met)
    sides = _sides(met, inside, mismatch)
    if mismatch.family == "numpy" or mismatch.host_required:
        _choose_for_host(choice, sides, mismatch, below)
    elif mismatch.family == "generator":
        _choose_generator(choice, met)
    elif len(sides) > 1:
        _weigh(choice, sides, mismatch, tracer)
    elif sides:
        _choose_only_side(choice, sides, mismatch)
    if choice.stray is not None:
        _climb(choice, frames, tracer)
        stray = choice.stray
        choice.chain = _chain(stray, tracer)
    return choice


def _seen_through(candidate: Candidate, tracer: Tracer) -> Candidate:
    """The result of a method that returns part of its object's state is that part: ``self.anchors(n)``."""
    call = candidate.node
    if not candidate.result or candidate.known or not isinstance(call, ast.Call):
        return candidate
    method = value(call.func, candidate.frame.scope)
    text = tracer.function_text(method, call)
    if text is None or not isinstance(method, MethodType):
        return candidate
    scope = Scope({"self": method.__self__}, candidate.frame.frame.f_globals)
    for returned in bindings.returns(text[1]):
        kept = value(view_of(returned), scope)
        if kept is MISSING or kept is method.__self__:
            continue
        for found in placement.walk(kept, limit=100):
            if placement.device_of(found.value) == candidate.device:
                return replace(candidate, value=found.value, known=True)
    return candidate


def _chain(stray: Candidate, tracer: Tracer) -> list[Step]:
    """Where the stray came from: for a member of an object where it was put there, else how the object was made."""
    assert stray.frame.source is not None
    if stray.member and stray.known:
        chain = holders.along(stray.root, "", stray.member)
        at = next((i for i in range(len(chain) - 2, -1, -1) if not holders.is_container(chain[i].value)), None)
        if at is not None:
            name = chain[at + 1].path.removeprefix(chain[at].path).lstrip(".").split("[")[0].split(".")[0]
            step = tracer.of_attribute_of(chain[at].value, name) if name else None
            if step is not None:
                rest = Site(step.site.source, step.value, step.site.frame) if step.value is not None else None
                return [step, *(tracer.trace(rest, stray.device) if rest is not None else [])]
    return tracer.trace(Site(stray.frame.source, stray.node, stray.frame.frame), stray.device)


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
    for device, side in sides.items():
        matched = [candidate for candidate in side if id(candidate) in exact]
        if matched:
            sides[device] = matched
        else:  # of a whole module one tensor will do
            sides[device] = [c for i, c in enumerate(side) if not c.member or c.node is not side[i - 1].node or i == 0]
    return sides


def _is_among(device: str, devices: list[str]) -> bool:
    """Texts may leave out the index: "cuda" means any card."""
    return any(device == name or (":" not in name and device.split(":")[0] == name) for name in devices)


def _choose_for_host(
    choice: Choice, sides: dict[str, list[Candidate]], mismatch: Mismatch, below: Frame | None
) -> None:
    """A rule wants the host: numpy, ``lengths``. The stray is what is not there."""
    away = [candidate for device, side in sides.items() if device != HOST for candidate in side]
    if not away:
        return
    named = below.frame.f_locals.get(mismatch.host_required or "") if below is not None else None
    fitting = [c for c in away if c.known and placement.is_tensor(named) and placement.same(c.value, named)]
    fitting = fitting or [c for c in away if c.role == mismatch.host_required]
    if mismatch.host_required == "lengths" and not fitting:
        fitting = away[1:]
    choice.stray = (fitting or away)[0]
    choice.host_required = True
    choice.margin = 10.0


def _choose_generator(choice: Choice, met: list[Candidate]) -> None:
    for candidate in met:
        if candidate.known and not placement.is_tensor(candidate.value):
            choice.stray = candidate
            choice.other = next((c for c in met if c is not candidate), None)
            choice.margin = 10.0
            return


def _choose_only_side(choice: Choice, sides: dict[str, list[Candidate]], mismatch: Mismatch) -> None:
    """Only one side can be seen: it is the stray unless it is where everything belongs."""
    device, side = next(iter(sides.items()))
    on_host = [c for c in side if c.device == HOST or c.device == "meta"]
    choice.stray = (on_host or side)[0]
    choice.margin = 1.0 if device == HOST else 0.5


# Weighing ------------------------------------------------------------------------------------


def _weigh(choice: Choice, sides: dict[str, list[Candidate]], mismatch: Mismatch, tracer: Tracer) -> None:
    weighed: list[tuple[float, int, Candidate, list[str]]] = []
    everyone = [candidate for side in sides.values() for candidate in side]
    for position, candidate in enumerate(everyone):
        weight, facts = _weight(candidate, everyone, mismatch, tracer)
        weighed.append((weight, -position, candidate, facts))
    weight, _, stray, facts = max(weighed, key=lambda item: item[:2])
    against = [item for item in weighed if item[2].device != stray.device]
    best_other = max(against, key=lambda item: (not item[2].member, -item[0], item[1])) if against else None
    choice.stray = stray
    choice.evidence = facts
    if best_other is not None:
        choice.other = best_other[2]
        choice.margin = weight - max(item[0] for item in against)
        choice.evidence = (facts + _facts_of_other(best_other[2]))[:3]


def _weight(
    candidate: Candidate, everyone: list[Candidate], mismatch: Mismatch, tracer: Tracer
) -> tuple[float, list[str]]:
    weight = 0.0
    facts: list[str] = []
    device = candidate.device
    name = candidate.expression
    if device == "meta":
        return 10.0, [f"{name} is on meta: it has a shape and no data"]
    if device == HOST and any(other.device not in (HOST, "meta") for other in everyone):
        weight += 2.0
    if mismatch.family == "indexing" and candidate.role == "index":
        return weight + 3.0, [f"{name} is the index, on {device}; {_BY_RULE}"]
    if candidate.role == "index":
        weight += 0.5
    unreachable = _unreachable_by_to(candidate, tracer)
    if unreachable is not None:
        owner_device, fact = unreachable
        weight += 4.0 if owner_device != device else -1.0
        facts += [fact] if owner_device != device else []
    elif candidate.via == "state":
        weight += 4.0
        facts.append(f"{name} is optimizer state on {device}")
    elif candidate.via in ("parameter", "buffer"):
        weight += _weight_of_registered(candidate)
        if HOST not in {other.device for other in everyone}:
            weight -= 3.0  # between two cards parameters are at home and activations travel
    elif not candidate.member:
        weight += _weight_of_history(candidate, tracer, facts)
    return weight, facts


def _unreachable_by_to(candidate: Candidate, tracer: Tracer) -> tuple[str, str] | None:
    """(device of the module, fact) for a tensor that a module keeps where ``.to()`` does not reach."""
    if not candidate.known:
        return None
    for holder in _owners(candidate, tracer):
        module, via, path = holder
        if not placement.is_module(module) or via in ("parameter", "buffer", "module"):
            continue
        devices = {placement.device_of(t) for t in holders.registered(module)}
        devices.discard("meta")
        if len(devices) == 1:
            home = devices.pop()
            kind = type(module).__name__
            return home, f"{path} is a plain attribute of {kind}, so .to() leaves it behind; {kind}'s parameters are on {home}"
    return None


def _owners(candidate: Candidate, tracer: Tracer) -> list[tuple[Any, str, str]]:
    """(object, how it holds the next one, path) for the owners of the candidate, the nearest first."""
    chain = holder_chain(candidate, tracer)
    return [
        (chain[i].value, str(chain[i + 1].via), chain[-1].path)
        for i in range(len(chain) - 2, -1, -1)
    ]


def holder_chain(candidate: Candidate, tracer: Tracer) -> list[holders.Holder]:
    """The owners from a name in the frame (or the workspace) down to the candidate itself."""
    if candidate.member and candidate.root is not None:
        chain = holders.along(candidate.root, candidate.frame.source.segment(candidate.node), candidate.member)  # type: ignore[union-attr]
        above = _chain_of_node(candidate)
        return above[:-1] + chain if above else chain
    above = _chain_of_node(candidate)
    if len(above) > 1:
        return above
    wanted = candidate.value
    me = [(name, live) for name, live in dict.items(candidate.frame.frame.f_locals) if name in ("self", "cls")]
    return holders.find(wanted, me) or holders.find(wanted, tracer.namespace.items())


def _chain_of_node(candidate: Candidate) -> list[holders.Holder]:
    """``self``, ``self.heads``, ``self.heads['a']`` of an expression of attributes and subscripts."""
    node = candidate.node
    inner: list[ast.expr] = []
    while isinstance(node, (ast.Attribute, ast.Subscript)):
        inner.append(node)
        node = node.value
    source, scope = candidate.frame.source, candidate.frame.scope
    assert source is not None
    root = value(node, scope)
    if root is MISSING or type(root) is type(ast):
        return []
    chain = [holders.Holder(source.segment(node), root, None)]
    for part in reversed(inner):
        live = value(part, scope)
        if live is MISSING:
            return []
        via = next((m.via for m in placement.members(chain[-1].value) if m.value is live), None)
        chain.append(holders.Holder(source.segment(part), live, via))
    return chain


def _weight_of_registered(candidate: Candidate) -> float:
    """A parameter of a module that mostly lives elsewhere is the stray; else the module is home."""
    if not placement.is_module(candidate.root):
        return 0.0
    devices: dict[str, int] = {}
    for tensor in holders.registered(candidate.root):
        devices[placement.device_of(tensor)] = devices.get(placement.device_of(tensor), 0) + 1
    mine = devices.get(candidate.device or "", 0)
    if len(devices) > 1 and mine * 2 < sum(devices.values()):
        return 2.0
    return 0.0


def _weight_of_history(candidate: Candidate, tracer: Tracer, facts: list[str]) -> float:
    """Moved on purpose to where it is: unlikely. Made without a device, or out of a loader: likely."""
    source = candidate.frame.source
    assert source is not None
    site = Site(source, candidate.node, candidate.frame.frame)
    chain = tracer.trace(site, candidate.device)
    ends: list[tuple[ast.expr, Site]] = [(step.value, step.site) for step in chain if step.value is not None]
    ends.insert(0, (candidate.node, site))
    for expr, where in ends:
        scope = tracer.scope(where)
        if isinstance(expr, ast.Call) and placement.is_module(value(expr.func, scope)):
            return -2.5  # it is where its module is
        for call in [n for n in ast.walk(expr) if isinstance(n, ast.Call)]:
            moved = moved_to(call, scope)
            if moved is not None and moved == candidate.device:
                return 1.5 if is_literal_device(call) and moved != HOST else -2.0
            if call_name(call, scope) in FACTORIES:
                if keyword(call, "device") is None:
                    facts.append(f"{candidate.expression} is made by {where.source.segment(call)} without a device")
                    return 2.0 if where.source.function(call) is not None else 0.5
                return -2.0
    if chain and chain[-1].how == "loop":
        return 0.5
    return 0.0


def is_literal_device(call: ast.Call) -> bool:
    """``x.cuda()``, ``x.to("cuda:0")``: the device stands in the code as a constant."""
    if not isinstance(call.func, ast.Attribute):
        return False
    if call.func.attr in ("cuda", "xpu", "hpu", "npu", "cpu"):
        return all(isinstance(arg, ast.Constant) for arg in call.args)
    given = keyword(call, "device") or (call.args[0] if call.args else None)
    return isinstance(given, ast.Constant) and isinstance(given.value, (str, int))


def _facts_of_other(other: Candidate) -> list[str]:
    if other.via in ("parameter", "buffer") and placement.is_module(other.root):
        count = sum(1 for _ in holders.registered(other.root))
        text = other.frame.source.segment(other.node)  # type: ignore[union-attr]
        return [f"{text}'s {count} parameters and buffers are on {other.device}" if count > 1 else f"{text} is on {other.device}"]
    return [f"{other.expression} is on {other.device}"]


# From the place of failure to the user's own name ----------------------------------------------


def _climb(choice: Choice, frames: list[Frame], tracer: Tracer) -> None:
    """Replace a parameter's name by what the caller passed, up to the place that has a name of its own."""
    assert choice.stray is not None
    stray = _lift(choice, choice.stray)
    users = [frame for frame in frames if frame.is_user]
    for _ in range(len(users) + 4):
        outer = _one_up(stray, users, frames, tracer)
        if outer is None:
            break
        stray = _lift(choice, outer)
    if choice.module is None and placement.is_module(stray.value):
        choice.module = stray.value
    choice.stray = stray


def _one_up(stray: Candidate, users: list[Frame], frames: list[Frame], tracer: Tracer) -> Candidate | None:
    frame, source = stray.frame, stray.frame.source
    assert source is not None
    root: ast.expr = stray.node
    while isinstance(root, (ast.Attribute, ast.Subscript)):
        root = root.value
    if not isinstance(root, ast.Name):
        return None
    if frame.frame.f_code.co_name in COMPREHENSIONS:
        return _enclosing(stray, root.id, users)
    function = source.function(root)
    if function is None:
        return None
    names = bindings.parameters(function)
    bound = bindings.of_name(function, root.id)
    binding = bindings.latest(bound, source, root)
    if binding is not None and (root.id not in names or binding.line < root.lineno or binding.how != "assignment"):
        return None
    if root.id not in names:
        return _enclosing(stray, root.id, users)
    if names[0] == root.id and root.id in ("self", "cls"):  # its state is named where the class is written
        me = value(root, frame.scope)
        if not placement.is_module(me) or not holders.wholly_on(me, stray.device or ""):
            return None
    at = users.index(frame)
    if at == 0:
        return None
    caller = users[at - 1]
    below = frames[frames.index(caller) + 1]
    outside = candidates(caller, below)
    wanted = _tensor_of(stray)
    matched = [c for c in outside if c.known and wanted is not None and placement.same(c.value, wanted)]
    exact = [c for c in matched if c.value is wanted] or matched
    if exact:
        best = min(exact, key=lambda c: (len(c.member), c.role == "callee"))
        return best
    given = tracer.argument_in_caller(frame, function, root.id) if stray.node is root else None
    if given is not None:
        return Candidate(caller, given[1], "", stray.device, value=stray.value, known=stray.known, result=True)
    return None


def _tensor_of(stray: Candidate) -> Any:
    """A tensor by which the stray can be found again: itself, or the first one in the module."""
    if placement.is_tensor(stray.value):
        return stray.value
    if stray.known and placement.is_module(stray.value):
        return next(iter(holders.registered(stray.value)), None)
    return None


def _enclosing(stray: Candidate, name: str, users: list[Frame]) -> Candidate | None:
    """A free variable: the same name in the live frame of the function around, where it is a parameter."""
    source = stray.frame.source
    at = users.index(stray.frame)
    code = stray.frame.frame.f_code
    if name not in code.co_freevars:
        return None
    for outer in reversed(users[:at]):
        if outer.source is source and name in outer.frame.f_code.co_cellvars:
            live = outer.frame.f_locals.get(name, MISSING)
            if live is not value(ast.Name(name), stray.frame.scope):
                return None
            if outer.frame.f_code.co_name in COMPREHENSIONS or name in outer.frame.f_code.co_varnames[: _arguments(outer)]:
                return replace(stray, frame=outer)
    return None


def _arguments(frame: Frame) -> int:
    code = frame.frame.f_code
    return code.co_argcount + code.co_kwonlyargcount + bool(code.co_flags & 4) + bool(code.co_flags & 8)


def _lift(choice: Choice, stray: Candidate) -> Candidate:
    """From one parameter of a module to the largest module around it that is wholly on the wrong device."""
    if not stray.known or stray.device is None:
        return stray
    if stray.member and stray.via in ("parameter", "buffer"):
        for holder in holders.along(stray.root, "", stray.member)[:-1]:
            if not placement.is_module(holder.value) or not holders.wholly_on(holder.value, stray.device):
                continue
            if any(placement.is_parameter(tensor) for tensor in holders.registered(holder.value)):
                stray = replace(stray, member=holder.path, value=holder.value, via="module", root=stray.root)
                break
            return stray
        else:
            return stray
    elif not placement.is_module(stray.value) and not (
        isinstance(stray.node, ast.Attribute) and _is_registered_attribute(stray)
    ):
        return stray
    if stray.member:
        return stray
    return _shrink(stray)


def _is_registered_attribute(stray: Candidate) -> bool:
    """``self.total``, where total is a parameter or buffer of the module ``self``."""
    assert isinstance(stray.node, ast.Attribute)
    owner = value(stray.node.value, stray.frame.scope)
    return placement.is_module(owner) and any(
        member.value is stray.value and member.via in ("parameter", "buffer") for member in placement.members(owner)
    )


def _shrink(stray: Candidate) -> Candidate:
    """``self.fc`` -> ``self`` while the module around is wholly on the wrong device too."""
    node = stray.node
    while isinstance(node, (ast.Attribute, ast.Subscript)):
        owner = value(node.value, stray.frame.scope)
        if not placement.is_module(owner) or not holders.wholly_on(owner, stray.device or ""):
            break
        node = node.value
        stray = replace(stray, node=node, value=owner, via="module")
    return stray
