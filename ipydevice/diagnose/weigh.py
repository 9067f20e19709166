"""How much speaks for each candidate to be the stray one, with the facts."""

from __future__ import annotations

import ast
from dataclasses import replace
from typing import Any

from ipydevice import launchers, placement
from ipydevice.diagnose import bindings, cards, holders, literals
from ipydevice.diagnose.evaluate import MISSING, Scope, value
from ipydevice.diagnose.finding import Site
from ipydevice.diagnose.infer import FACTORIES, call_name, is_conversion, keyword, moved_to, on_the_way
from ipydevice.diagnose.meeting import Candidate
from ipydevice.diagnose.origin import Tracer
from ipydevice.language import say
from ipydevice.messages import Mismatch

HOST = "cpu"
_MOVES = ("to", "cuda", "xpu", "hpu", "npu")


def weight(
    candidate: Candidate, everyone: list[Candidate], mismatch: Mismatch, tracer: Tracer
) -> tuple[float, list[str]]:
    """How likely the candidate is the stray one, as a sum of points, and the facts that count for it.

    The points were set by hand and checked on the notebooks of tests/cases and on mutants. What ``.to()`` cannot
    reach weighs most (4), being the only one on the host counts 2, having been moved on purpose counts against it.
    """
    points = 0.0
    facts: list[str] = []
    device = candidate.device
    name = candidate.expression
    if device == "meta":
        return 10.0, [say("{name} is on meta: it has a shape and no data", name=name)]
    if device == HOST and any(other.device not in (HOST, "meta") for other in everyone):
        points += 2.0
    between_cards = HOST not in {other.device for other in everyone}
    candidate = _as_registered(candidate, tracer)
    if between_cards and cards.is_off_its_card(device, {other.device for other in everyone}):
        own = launchers.own_card()
        return 4.5, [say("the card of this process is number {own}, by its rank", own=own)]
    if between_cards and cards.is_sent_by_constant(candidate, everyone, tracer):
        return 4.5, [say("only one line of the code sends anything to {device}", device=device)]
    if between_cards and candidate.via in ("parameter", "buffer"):
        others = {other.device for other in everyone} - {device}
        if cards.is_split(candidate, everyone, tracer) or any(literals.sends_modules(str(o), tracer) for o in others):
            return -4.0, []  # a model, or several, that were meant for two cards
        if literals.moves_module(candidate.site, candidate.value, device or "", tracer):
            return 4.0, [
                say("the code puts {name} on {device}, a card that it names as a constant", name=name, device=device)
            ]
        return -4.0, []  # parameters are at home and activations travel
    if mismatch.family == "indexing" and candidate.role == "value":
        stays = (
            between_cards and _weight_of_history(candidate, everyone, tracer, []) <= 0
        )  # between cards the index travels
        if stays or _belongs_there(candidate, tracer):
            return 0.5, facts
        return points + 3.5, [
            say("{name} is on {device}, and what it gives is used on the device of the index", name=name, device=device)
        ]
    if mismatch.family == "indexing" and candidate.role == "index":
        return points + 3.0, [
            say(
                "{name} is the index, on {device}; an index has to be on the host or with the tensor "
                "that it selects from",
                name=name,
                device=device,
            )
        ]
    if candidate.role == "index":
        if device == HOST and _selects(candidate):
            return -4.0, []
        points += 0.5
    if tracer.in_loader:
        why = say(
            "{name} is made on {device} for a DataLoader, whose items belong on the host", name=name, device=device
        )
        return (points + 4.0, [why]) if device != HOST else (0.0, facts)
    unreachable = _unreachable_by_to(candidate, tracer)
    if unreachable is not None:
        owner_device, fact = unreachable
        points += 4.0 if owner_device != device else -1.0
        facts += [fact] if owner_device != device else []
    elif candidate.via == "state":
        points += 4.0
        facts.append(say("{name} is optimizer state on {device}", name=name, device=device))
    elif candidate.via in ("parameter", "buffer"):
        points += _weight_of_registered(candidate) - (0.5 if device != HOST and not between_cards else 0.0)
        if points > 0 and placement.is_module(candidate.root) and holders.wholly_on(candidate.root, HOST):
            points += 0.25  # then what else is on the host there belongs to the same mistake
    elif between_cards and candidate.via == "item":
        share, told = _share_of_list(candidate)
        points, facts = points + share, facts + told
    elif not candidate.member:
        points += _weight_of_history(candidate, everyone, tracer, facts)
        if between_cards:
            points += 1.5 if cards.is_away_from_models(candidate, everyone, tracer) else 0.0
            points -= cards.when_made(candidate, tracer) / 1000 + cards.is_latest(candidate, everyone, tracer)
    return points, facts


def _selects(candidate: Candidate) -> bool:
    """Is it the ``i`` of ``x[i] = v``? That may be on the host whatever ``x`` is on (ATen/TensorIndexing.h)."""
    below: ast.AST = candidate.site.node
    for up in candidate.site.source.ancestors(below):
        if isinstance(up, ast.Subscript):
            return below is up.slice
        if isinstance(up, ast.stmt):
            return False
        below = up
    return False


def _as_registered(candidate: Candidate, tracer: Tracer) -> Candidate:
    """A tensor of a module, whatever way it was come by: ``self.fb`` of a buffer, ``p`` of ``model.parameters()``."""
    if candidate.member or not candidate.known or not placement.is_tensor(candidate.value):
        return candidate
    chain = _chain_of_node(candidate)
    if len(chain) < 2 or chain[-1].via not in ("parameter", "buffer"):
        chain = tracer.models.find(candidate.value)
    if len(chain) < 2 or chain[-1].via not in ("parameter", "buffer"):
        return candidate
    return replace(candidate, via=str(chain[-1].via), root=chain[-2].value)


def _unreachable_by_to(candidate: Candidate, tracer: Tracer) -> tuple[str, str] | None:
    """(device of the module, fact) for a tensor that a module keeps where ``.to()`` does not reach."""
    if not candidate.known:
        return None
    keeper: Any = None
    for module, via, path in _owners(candidate, tracer):
        if not placement.is_module(module) or (keeper is None and via in ("parameter", "buffer", "module")):
            continue
        keeper = module if keeper is None else keeper
        devices = {placement.device_of(t) for t in holders.registered(module)} - {"meta"}
        if len(devices) == 1:
            home, kind = devices.pop(), placement.class_name(type(keeper))
            whose = kind if module is keeper else placement.class_name(type(module))
            fact = say(
                "{name} is a plain attribute of {kind}, so .to() leaves it behind; {whose}'s parameters are on {home}",
                name=path,
                kind=kind,
                whose=whose,
                home=home,
            )
            return home, fact
    return None


def _owners(candidate: Candidate, tracer: Tracer) -> list[tuple[Any, str, str]]:
    """(object, how it holds the next one, path) for the owners of the candidate, the nearest first."""
    chain = holder_chain(candidate, tracer)
    return [(chain[i].value, str(chain[i + 1].via), chain[-1].path) for i in range(len(chain) - 2, -1, -1)]


def holder_chain(candidate: Candidate, tracer: Tracer) -> list[holders.Holder]:
    """The owners from a name in the frame (or the workspace) down to the candidate itself."""
    if candidate.member and candidate.root is not None:
        chain = holders.along(candidate.root, candidate.source.segment(candidate.node), candidate.member)
        above = _chain_of_node(candidate)
        return above[:-1] + chain if above else chain
    above = _chain_of_node(candidate)
    if len(above) > 1 and not all(holders.is_container(holder.value) for holder in above[:-1]):
        return above
    wanted = candidate.value
    if not candidate.known:
        return above if len(above) > 1 else []
    me = next(((n, live) for n, live in dict.items(candidate.frame.frame.f_locals) if n in ("self", "cls")), None)
    inside = tracer.held_by(*me).find(wanted) if me is not None else []
    kept = inside or tracer.held.find(wanted)
    if len(above) > 1 and all(holders.is_container(holder.value) for holder in kept[:-1]):
        return above
    return kept


def _chain_of_node(candidate: Candidate) -> list[holders.Holder]:
    """``self``, ``self.heads``, ``self.heads['a']`` of an expression of attributes and subscripts."""
    node = candidate.node
    inner: list[ast.expr] = []
    while isinstance(node, (ast.Attribute, ast.Subscript)):
        inner.append(node)
        node = node.value
    source, scope = candidate.source, candidate.frame.scope
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


def _weight_of_history(candidate: Candidate, everyone: list[Candidate], tracer: Tracer, facts: list[str]) -> float:
    """Moved on purpose to where it is: unlikely. Made without a device, or out of a loader: likely."""
    site = candidate.site
    chain = tracer.trace(site, candidate.device)
    ends: list[tuple[ast.expr, Site]] = [(step.value, step.site) for step in chain if step.value is not None]
    ends.insert(0, (candidate.node, site))
    home = site.source.function(site.node)
    for step in chain:
        function = step.site.source.function(step.site.node) if step.how == "return" else None
        if function is not None and bindings.is_memoised(function):
            facts.append(say("{name} is remembered from an earlier call", name=candidate.expression))
            return 1.5
    for expr, where in ends:
        scope = tracer.scope(where)
        inner = expr
        while isinstance(inner, ast.Call) and isinstance(inner.func, ast.Attribute):
            if not isinstance(inner.func.value, ast.Call) or moved_to(inner, scope) is not None:
                break
            inner = inner.func.value  # `net(x)` of `net(x).softmax(-1)`
        module = value(inner.func, scope) if isinstance(inner, ast.Call) else None
        if placement.is_module(module) and candidate.device in (placement.devices_of(module) or (candidate.device,)):
            return -2.5  # it is where its module is
        for call in on_the_way(expr):
            moved = moved_to(call, scope)
            if moved is not None and moved == candidate.device:
                if literals.is_literal(call) and moved != HOST and not cards.is_home(candidate, everyone):
                    return 1.5
                return -1.0 if moved == HOST and where.source.function(call) is not home else -2.0  # laid aside there
            if moved is None and _is_told_where(call, scope):
                return -1.0
            if call_name(call, scope) in FACTORIES:
                if keyword(call, "device") is None and candidate.device != HOST:
                    facts.append(
                        say(
                            "{code} names no device: the default device is {device}",
                            code=where.source.segment(call),
                            device=candidate.device,
                        )
                    )
                    return 3.5 if _sets_default_in_passing(tracer) else 1.5
                if keyword(call, "device") is None:
                    facts.append(
                        say(
                            "{name} is made by {code} without a device",
                            name=candidate.expression,
                            code=where.source.segment(call),
                        )
                    )
                    return 2.0 if where.source.function(call) is not None else 0.5
                return -2.0
    if chain and chain[-1].how == "loop":
        return 0.5
    return 0.0


def _sets_default_in_passing(tracer: Tracer) -> bool:
    """Whether a function of the user's sets the default device for all that comes after, unnoticed by its callers."""
    return any(
        isinstance(node, ast.Call)
        and ast.unparse(node.func).endswith(("set_default_device", "set_default_tensor_type"))
        and source.function(node) is not None
        for source in tracer.sources.all_cells()
        for node in source.nodes
    )


def _share_of_list(candidate: Candidate) -> tuple[float, list[str]]:
    """Of the items of one list the few are stray, the many are not."""
    if not candidate.member or type(candidate.root) not in (list, tuple) or candidate.via != "item":
        return 0.0, []
    devices = [placement.device_of(item) for item in candidate.root if placement.is_tensor(item)]
    mine = devices.count(candidate.device or "")
    if 2 * mine >= len(devices):
        return 0.0, []
    listed = candidate.source.segment(candidate.node)
    return 1.0, [
        say(
            "{mine} of the {count} tensors in {name} is on {device}",
            mine=mine,
            count=len(devices),
            name=listed,
            device=candidate.device,
        )
    ]


def _is_told_where(call: ast.Call, scope: Scope) -> bool:
    """``t.to(dev)``, whose `dev` is gone: moved on purpose, wherever that was."""
    if not isinstance(call.func, ast.Attribute) or call.func.attr != "to" or not (call.args or call.keywords):
        return False
    if is_conversion(call, scope):
        return False
    return value(keyword(call, "device") or (call.args[0] if call.args else None), scope) is MISSING


def _belongs_there(candidate: Candidate, tracer: Tracer) -> bool:
    """Whether a table is kept on its device by design: what is selected is moved next, or what is filled in before."""
    at_top = candidate.source.function(candidate.node) is None  # a notebook's data stays on the host
    return at_top or _is_moved_afterwards(candidate) or _is_filled_by_moves(candidate, tracer)


def _is_filled_by_moves(candidate: Candidate, tracer: Tracer) -> bool:
    """``bank[i:j] = encoder(x).cpu()``"""
    name = candidate.node.id if isinstance(candidate.node, ast.Name) else None
    for source in tracer.sources.all_cells() if name is not None else []:
        for node in source.nodes:
            match node:
                case ast.Assign(targets=[ast.Subscript(value=ast.Name(id=filled))], value=given) if filled == name:
                    calls = (part for part in ast.walk(given) if isinstance(part, ast.Call))
                    if any(moved_to(call, tracer.workspace) == candidate.device for call in calls):
                        return True
    return False


def _is_moved_afterwards(candidate: Candidate) -> bool:
    """Whether what is selected is moved next, or selects itself: ``data[perm].to(d)``, ``i = rows[best]; x[i]``."""
    source, node = candidate.source, candidate.node
    names: set[str] = set()
    for outer in source.ancestors(node):
        if isinstance(outer, ast.Call) and isinstance(outer.func, ast.Attribute) and outer.func.attr in _MOVES:
            return True
        if isinstance(outer, ast.Assign):
            names = {part.id for target in outer.targets for part in ast.walk(target) if isinstance(part, ast.Name)}
        if isinstance(outer, (ast.For, ast.AsyncFor, ast.FunctionDef, ast.AsyncFunctionDef)):
            break
    scope = source.function(node) or source.tree
    for part in ast.walk(scope):  # `(f.to(d) for f in fields)`
        if isinstance(part, (ast.comprehension, ast.For)) and isinstance(part.iter, ast.Name) and part.iter.id in names:
            names |= {inner.id for inner in ast.walk(part.target) if isinstance(inner, ast.Name)}
    for part in ast.walk(scope):
        match part:
            case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr=attr)) if name in names and attr in _MOVES:
                return True
            case ast.Subscript(slice=ast.Name(id=name)) if name in names:
                return True  # an index itself, which the host is good for
    return False


def facts_of_other(other: Candidate) -> list[str]:
    if other.via in ("parameter", "buffer") and placement.is_module(other.root):
        count = sum(1 for _ in holders.registered(other.root))
        text = other.source.segment(other.node)
        return [
            say("{name}'s {count} parameters and buffers are on {device}", name=text, count=count, device=other.device)
            if count > 1
            else say("{name} is on {device}", name=text, device=other.device)
        ]
    return [say("{name} is on {device}", name=other.expression, device=other.device)]
