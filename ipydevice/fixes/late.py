"""Modules that come late or are brought home: layers added after the move, parts that someone took back to the host."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

from ipydevice import placement
from ipydevice.diagnose.evaluate import MISSING, attribute
from ipydevice.diagnose.finding import Site
from ipydevice.fixes import bindings, classes
from ipydevice.fixes.context import Context, Proposal
from ipydevice.fixes.modules import live_move
from ipydevice.fixes.movers import devices_within, moves_itself
from ipydevice.fixes.names import last_name, receiver, root
from ipydevice.fixes.workspace import frame_locals
from ipydevice.language import say
from ipydevice.placement.kinds import class_name


def late(ctx: Context) -> Iterator[Proposal]:
    """A layer that a method adds to a model that has been moved; a whole of many parts that is home again."""
    stray = ctx.stray
    if stray is None or not (placement.is_module(stray.value) or placement.is_module(stray.owner)):
        return
    yield from _put_in(ctx)
    yield from _added_later(ctx)
    yield from _home_again(ctx)


# -- layers that a cell puts into a model --------------------------------------------------------


def _put_in(ctx: Context) -> Iterator[Proposal]:
    """``net[2] = nn.Linear(6, 3)`` of a model that has been moved gets ``.to(device)``."""
    step = ctx.chain[0] if ctx.chain and ctx.finding.cause == "module_added_after_move" else None
    if step is None or step.how != "attribute" or not isinstance(step.value, ast.Call):
        return
    site = Site(step.site.source, step.value, step.site.frame)
    if site.source.class_of(site.node) is not None:
        return
    device = ctx.device(site)
    if device is not None:
        draft = ctx.draft(site.source)
        draft.suffix(step.value, f".to({device})")
        note = say("an optimizer that was made before does not know its parameters")
        yield Proposal(say("move {name} where it is put in", name=site.source.segment(step.value)), [draft], note=note)


# -- layers that a method adds ------------------------------------------------------------------


def _added_later(ctx: Context) -> Iterator[Proposal]:
    """``self.heads[task] = nn.Linear(d, n)`` in a method gets ``.to(self.body.weight.device)``."""
    if not any(_is_mixed(ctx, live) for live in _alive(ctx)):
        return  # nothing of the model has been moved
    for step in (*ctx.chain, *ctx.finding.owner_chain):
        source, method = step.site.source, step.site.source.function(step.site.node)
        statement = source.statement(step.site.node)
        node = source.class_of(step.site.node)
        if (
            step.how not in ("attribute", "item", "assignment")
            or node is None
            or not isinstance(method, ast.FunctionDef)
            or method.name == "__init__"
            or statement is None
        ):
            continue
        call = _new_layer(statement, method)
        if not isinstance(call, ast.Call) or not last_name(call.func)[:1].isupper():
            continue
        site = Site(source, call, step.site.frame)
        device = _of_the_others(ctx, node, receiver(method)) or ctx.device(site)
        if device is None:
            return
        draft = ctx.draft(source)
        draft.suffix(call, f".to({device})")
        note = say("an optimizer that was made before does not know its parameters")
        yield Proposal(
            say("make the new {layer} on the model's device", layer=last_name(call.func)),
            [draft],
            live=live_move(ctx),
            note=note,
        )
        return


def _new_layer(statement: ast.stmt, method: ast.FunctionDef) -> ast.expr | None:
    """What makes the layer: of ``self.head = Head()``, ``self.heads.append(Head())``, or ``head = Head()`` above it."""
    own = receiver(method)
    match statement:
        case ast.Assign(targets=[ast.Name(id=name)], value=made):
            later = [node for one in ast.walk(method) for node in _registered(one, own) if isinstance(node, ast.Name)]
            return made if any(node.id == name for node in later) else None
        case ast.Assign(value=made):
            return made
        case _:
            return next(_registered(getattr(statement, "value", statement), own), None)


def _registered(node: ast.AST, own: str) -> Iterator[ast.expr]:
    """What a call or assignment puts into the object: ``self.blocks.append(x)``, ``self.add_module(name, x)``."""
    match node:
        case ast.Call(func=ast.Attribute(attr=verb, value=held), args=[*_, last]) if verb in _REGISTERS:
            if root(held) == own:
                yield last
        case ast.Assign(targets=[ast.Attribute() | ast.Subscript() as target], value=value) if root(target) == own:
            yield value
        case ast.Call(func=ast.Name(id="setattr"), args=[ast.Name(id=name), _, value]) if name == own:
            yield value


_REGISTERS = ("append", "insert", "add_module", "register_module")


def _of_the_others(ctx: Context, node: ast.ClassDef, own: str) -> str | None:
    """The device of what ``__init__`` gave the module, said in one of its methods."""
    init = classes.init_of(node)
    live = next((one for one in _alive(ctx) if class_name(type(one)) == node.name and _is_mixed(ctx, one)), None)
    if init is None or live is None:
        return None
    for target, _ in (pair for statement in ast.walk(init) for pair in classes.pairs(statement)):
        if not isinstance(target, ast.Attribute) or last_name(target.value) != own:
            continue
        held = attribute(live, target.attr)
        if placement.is_parameter(held) and placement.device_of(held) == ctx.target:
            return f"{own}.{target.attr}.device"
        if placement.is_module(held) and placement.devices_of(held) == (ctx.target,):
            weight = attribute(held, "weight")
            if placement.is_parameter(weight):
                return f"{own}.{target.attr}.weight.device"
            if any(found.via == "parameter" for found in placement.walk(held)):
                return f"next({own}.{target.attr}.parameters()).device"
    return None


def _alive(ctx: Context) -> Iterator[Any]:
    """The modules that run in the frames of the finding, and those of the workspace."""
    for site in (ctx.finding.failed, *(step.site for step in ctx.chain)):
        yield from (live for live in list(frame_locals(site.frame).values()) if placement.is_module(live))
    yield from (live for live in list(ctx.finding.namespace.values()) if placement.is_module(live))


def _is_mixed(ctx: Context, live: Any) -> bool:
    held = placement.devices_of(live)
    return ctx.target in held and len(held) > 1


# -- brought home ---------------------------------------------------------------------------------


def _home_again(ctx: Context) -> Iterator[Proposal]:
    """``pipe = pipe.to(device)`` above its use, where all of an object that moves itself is on the host again."""
    for text, live, site in _used_objects(ctx):
        if (
            placement.is_module(live)
            or placement.is_tensor(live)
            or not moves_itself(live)
            or not _is_home(ctx, live)
            or not _has_been_moved(ctx)
        ):
            continue
        statement = site.source.statement(site.node)
        device = ctx.device(Site(site.source, statement, site.frame), avoid=[text]) if statement is not None else None
        if device is None or statement is None:
            continue
        draft = ctx.draft(site.source)
        code = f"{text}.to({device})"
        draft.before(statement, f"{text} = {code}" if _gives_itself(ctx, live) else code)
        note = say("something has brought it home since it was moved; moves nothing when it is there already")
        yield Proposal(say("move {name} before it is used", name=text), [draft], note=note)
        return


def whole_again(ctx: Context) -> Iterator[Proposal]:
    """``model.to(device)`` above its use, where the model has been moved and got more parameters afterwards."""
    stray, start = ctx.stray, ctx.finding.start
    if stray is None or start is None or start.source.cell is not ctx.work.failed:
        return
    wanted = stray.value if placement.is_module(stray.value) else stray.owner
    for name, live in list(ctx.finding.namespace.items()):
        if name.startswith("_") or not placement.is_module(live) or live is wanted:
            continue
        held = set(placement.devices_of(live))
        if held != {ctx.target, stray.device} or not _registers(live, stray.value):
            continue
        line = start.frame.f_lineno if start.frame is not None else 0
        body = start.source.tree.body
        node = next((one for one in body if one.lineno <= line <= (one.end_lineno or 0)), None)
        if node is None:
            return
        device = ctx.device(Site(start.source, node, start.frame), avoid=[name])
        if device is None:
            continue
        draft = ctx.draft(start.source)
        draft.before(node, f"{name}.to({device})")
        yield Proposal(
            say("move {name} again before it is used", name=name),
            [draft],
            note=say("parts of it came after it was moved"),
        )
        return


def _registers(module: Any, wanted: Any) -> bool:
    """Does moving the module move this too?"""
    return any(found.value is wanted for found in placement.walk(module)) or (
        placement.is_module(wanted) and bindings.contains(module, wanted)
    )


def _used_objects(ctx: Context) -> Iterator[tuple[str, Any, Site]]:
    """(text, object, place) of what is handed on along the stray's way, and of its owner in the failed cell."""
    for step in ctx.chain:
        if step.how == "argument" and isinstance(step.value, (ast.Name, ast.Attribute)):
            site = Site(step.site.source, step.value, step.site.frame)
            live = ctx.value(site)
            if live is not MISSING:
                yield site.source.segment(step.value), live, site
    start, stray = ctx.finding.start, ctx.stray
    if start is None or stray is None:
        return
    for name in bindings.names_of(ctx, stray.owner):
        for node in ast.walk(start.source.statement(start.node) or start.node):
            if isinstance(node, ast.Name) and node.id == name:
                yield name, stray.owner, Site(start.source, node, start.frame)
                return


def _is_home(ctx: Context, live: Any) -> bool:
    """Is all of it where the stray is?"""
    stray = ctx.stray
    held = devices_within(live)
    return stray is not None and held == (stray.device,)


def _has_been_moved(ctx: Context) -> bool:
    """Does the notebook move it where it is made?"""
    return any(
        isinstance(n, ast.Call) and last_name(n.func) in ("to", "cuda")
        for step in (*ctx.chain, *ctx.finding.owner_chain)
        if step.how == "assignment" and step.value is not None
        for n in ast.walk(step.value)
    )


def _gives_itself(ctx: Context, live: Any) -> bool:
    """Does its ``to`` return something, as it has to for ``x = x.to(device)``?"""
    for _, node in classes.class_nodes(ctx, live):
        for method in node.body:
            if isinstance(method, ast.FunctionDef) and method.name == "to":
                return any(isinstance(n, ast.Return) and n.value is not None for n in ast.walk(method))
    return False
