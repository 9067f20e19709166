"""From the place of failure to the user's own name for the stray.

A parameter's name is replaced by what the caller passed, up to the place that has a name
of its own; one parameter of a module by the largest module that is wholly misplaced.
"""

from __future__ import annotations

import ast
import re
from dataclasses import replace
from typing import Any

from ipydevice import placement
from ipydevice.diagnose import bindings, holders
from ipydevice.diagnose.evaluate import MISSING, value
from ipydevice.diagnose.finding import Site, Step
from ipydevice.diagnose.frames import COMPREHENSIONS, Frame
from ipydevice.diagnose.meeting import Candidate, candidates, ingredients, view_of
from ipydevice.diagnose.origin import Tracer
from ipydevice.placement.kinds import class_dicts

# They belong on the host, for pack_padded_sequence; what was computed from them does not.
_LENGTHS = re.compile(r"(\b|_)len(gth)?s?\b", re.IGNORECASE)


def outwards(stray: Candidate, frames: list[Frame], tracer: Tracer, *, to_its_source: bool) -> Candidate:
    """The stray by the name that the user should look at first.

    `to_its_source`: also from what was computed to what it was computed of; where a rule wants the host, the
    result is what has to go there, and its source may stay.
    """
    users = [frame for frame in frames if frame.is_user]
    stray = _group_behind(_model_behind(_lift(_kept_by_self(stray, tracer)), users, tracer), tracer)
    for _ in range(len(users) + 4):
        outer = _one_up(stray, users, frames, tracer) or (_source_of(stray) if to_its_source else None)
        if outer is None:
            break
        stray = _group_behind(_model_behind(_lift(outer), users, tracer), tracer)
    return _argument_behind(stray, users, tracer) if to_its_source else stray


def _kept_by_self(stray: Candidate, tracer: Tracer) -> Candidate:
    """``self._scale`` for ``self.prior.scale``, where prior makes a new distribution of it on every call."""
    me = stray.frame.frame.f_locals.get("self")
    if not stray.member or me is None or placement.is_module(stray.root) or stray.root is me:
        return stray
    inside = tracer.held_by("self", me)
    if inside.find(stray.root):
        return stray  # the object itself is kept
    kept = inside.find(stray.value)
    if not kept:
        return stray
    for node in stray.source.nodes:
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load) and ast.unparse(node) == kept[-1].path:
            via = kept[-1].via or ""
            return replace(stray, node=node, member="", root=None, via=via, owner=me, attribute=node.attr)
    return stray


def _argument_behind(stray: Candidate, users: list[Frame], tracer: Tracer) -> Candidate:
    """What a caller passed, where the stray was computed from it: ``enc.mask`` for a library's ``bias = extend(mask)``.

    Not through a function that moves things: then that one is to blame.
    """
    if stray.member or stray.elsewhere is not None or placement.is_module(stray.value):
        return stray
    for step in tracer.trace(stray.site, stray.device):
        if step.how not in ("assignment", "argument", "return") or hands_on(step):
            break
        outer = next((frame for frame in users[: users.index(stray.frame)] if frame.frame is step.site.frame), None)
        if step.how != "argument" or outer is None or step.value is None:
            continue
        live = value(step.value, outer.scope)
        named = outer.source.segment(step.value) if outer.source is not None else ""
        if _LENGTHS.search(named) and not placement.same(live, stray.value):
            break
        if placement.is_tensor(live) and placement.device_of(live) == stray.device:
            stray = Candidate(outer, step.value, stray.role, stray.device, value=live, known=True)
        elif live is MISSING and isinstance(step.value, (ast.Attribute, ast.Subscript)):
            stray = Candidate(outer, step.value, stray.role, stray.device, result=True)
    return stray


def hands_on(step: Step) -> bool:
    """Whether a step is the return statement of a function that moves things, or is told a device."""
    function = step.site.source.function(step.site.node) if step.how == "return" else None
    return function is not None and bindings.handles_devices(function)


def _model_behind(stray: Candidate, users: list[Frame], tracer: Tracer) -> Candidate:
    """The model on the wrong device that the stray was taken out of.

    ``self`` of ``for layer in self.layers``, ``target`` of ``state = target.state_dict()`` and of
    ``for p, q in zip(model.parameters(), target.parameters())``.
    """
    shown = view_of(stray.node, stray.frame.scope) if isinstance(stray.node, ast.Attribute) else stray.node  # `p.data`
    if stray.member or not stray.known or not isinstance(shown, (ast.Name, ast.Subscript)):
        return stray
    if not placement.is_module(stray.value) and not placement.is_tensor(stray.value):
        return stray
    for step in tracer.trace(stray.site, stray.device):
        if step.value is None or step.how in ("argument", "return"):
            return stray
        for frame in _frames_of(step, stray, users):
            for node in ast.walk(step.value):
                live = value(node, frame.scope) if isinstance(node, (ast.Name, ast.Attribute)) else MISSING
                if isinstance(node, ast.expr) and _is_model_of(live, stray):
                    return _shrink(replace(stray, frame=frame, node=node, value=live, via="module"))
    return stray


def _group_behind(stray: Candidate, tracer: Tracer) -> Candidate:
    """``self`` of ``for m in self.parts.values(): m.update(x)``, where `self` can be moved by a ``to`` of its own."""
    me, root = stray.frame.frame.f_locals.get("self"), stray.node
    while isinstance(root, (ast.Attribute, ast.Subscript)):
        root = root.value
    if not stray.known or not isinstance(root, ast.Name) or root.id == "self" or not _is_group(me, stray):
        return stray
    for step in tracer.trace(Site(stray.source, root, stray.frame.frame)):
        if step.site.frame is not stray.frame.frame or step.value is None:
            break
        for node in ast.walk(step.value):
            if isinstance(node, ast.Name) and node.id == "self":
                path = next((f.path for f in placement.walk(me) if f.value is _tensor_of(stray)), "")
                return replace(stray, node=node, member=path, root=me) if path else stray
    return stray


def _is_group(live: Any, stray: Candidate) -> bool:
    """An object that is no module, that its class can move, and of which everything is on the stray's device."""
    if live is None or placement.is_module(live) or placement.is_tensor(live) or holders.is_container(live):
        return False
    movable = any("to" in space for space in class_dicts(type(live)))
    return movable and placement.devices_of(live) == (stray.device,)


def _frames_of(step: Step, stray: Candidate, users: list[Frame]) -> list[Frame]:
    """The live frames in which the names of a step can be read: that of the stray, and those around a comprehension."""
    found = [] if step.site.source is not stray.source else [stray.frame]
    at = users.index(stray.frame)
    while (
        found and at > 0 and users[at].frame.f_code.co_name in COMPREHENSIONS and users[at - 1].source is stray.source
    ):
        at -= 1
        found.append(users[at])
    return found


def _is_model_of(live: Any, stray: Candidate) -> bool:
    """Whether `live` is a module that holds the stray and is wholly on its device."""
    if not placement.is_module(live) or live is stray.value or not holders.wholly_on(live, stray.device or ""):
        return False
    if placement.is_module(stray.value):
        return True
    return any(placement.same(tensor, stray.value) for tensor in holders.registered(live))


def _one_up(stray: Candidate, users: list[Frame], frames: list[Frame], tracer: Tracer) -> Candidate | None:
    frame, source = stray.frame, stray.source
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
        if not (placement.is_module(me) and holders.wholly_on(me, stray.device or "")) and not _is_group(me, stray):
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
        found = min(exact, key=lambda c: (len(c.member), c.role == "callee"))
        return None if found.member and isinstance(found.node, ast.Call) else found  # `f(x).mask` names nothing there
    given = tracer.argument_in_caller(frame, function, root.id) if stray.node is root else None
    if given is not None:
        return Candidate(caller, given[1], "", stray.device, value=stray.value, known=stray.known, result=True)
    return None


def _source_of(stray: Candidate) -> Candidate | None:
    """The tensor that a value was computed from, where PyTorch alone did that: ``mask`` of ``w = mask.float()``."""
    if stray.result:
        return _only_part(ingredients(stray.frame, stray.node), stray) if stray.elsewhere is None else None
    function = stray.source.function(stray.node)
    if function is None or not isinstance(stray.node, ast.Name) or stray.member or not placement.is_tensor(stray.value):
        return None
    binding = bindings.latest(bindings.of_name(function, stray.node.id), stray.source, stray.node)
    if binding is None or binding.how != "assignment" or binding.value is None:
        return None
    parts = ingredients(stray.frame, binding.value)
    if any(isinstance(c.node, ast.Name) and c.node.id == stray.node.id for c in parts):
        return None  # `x = x.float()`: the name means the result now
    return _only_part(parts, stray)


def _only_part(parts: list[Candidate], stray: Candidate) -> Candidate | None:
    """The first tensor that something was computed from, where all of them are on the stray's device and have names."""
    named = [c for c in parts if c.known and not c.result and not c.member and c.device == stray.device]
    if any(_LENGTHS.search(c.expression) for c in named):
        return None
    return named[0] if named and len(named) == sum(c.device is not None for c in parts) else None


def _tensor_of(stray: Candidate) -> Any:
    """A tensor by which the stray can be found again: itself, or the first one in the module."""
    if placement.is_tensor(stray.value):
        return stray.value
    if stray.known and placement.is_module(stray.value):
        return next(iter(holders.registered(stray.value)), None)
    return None


def _enclosing(stray: Candidate, name: str, users: list[Frame]) -> Candidate | None:
    """A free variable: the same name in the live frame of the function around, where it is a parameter."""
    source = stray.source
    at = users.index(stray.frame)
    code = stray.frame.frame.f_code
    if name not in code.co_freevars:
        return None
    for outer in reversed(users[:at]):
        if outer.source is source and name in outer.frame.f_code.co_cellvars:
            live = outer.frame.f_locals.get(name, MISSING)
            if live is not value(ast.Name(name), stray.frame.scope):
                return None
            if (
                outer.frame.f_code.co_name in COMPREHENSIONS
                or name in outer.frame.f_code.co_varnames[: _arguments(outer)]
            ):
                return replace(stray, frame=outer)
    return None


def _arguments(frame: Frame) -> int:
    code = frame.frame.f_code
    return code.co_argcount + code.co_kwonlyargcount + bool(code.co_flags & 4) + bool(code.co_flags & 8)


def _lift(stray: Candidate) -> Candidate:
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
