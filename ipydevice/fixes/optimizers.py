"""State that an optimizer keeps for parameters that have moved."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from types import ModuleType
from typing import Any

from ipydevice import placement
from ipydevice.diagnose.evaluate import Scope, is_of, value
from ipydevice.diagnose.finding import Site, Step
from ipydevice.diagnose.infer import keyword
from ipydevice.diagnose.source import Source
from ipydevice.fixes import classes, moves, origins, results
from ipydevice.fixes.attributes import at_use, owners
from ipydevice.fixes.context import Context, Proposal
from ipydevice.fixes.factories import fresh
from ipydevice.fixes.movers import is_move
from ipydevice.fixes.names import bound, free, last_name, parameters, root
from ipydevice.fixes.objects import move_object
from ipydevice.fixes.optimizer_code import moving
from ipydevice.language import say
from ipydevice.placement.kinds import attributes, torch_class


def optimizer_state(ctx: Context) -> Iterator[Proposal]:
    """Move the state to its parameters' devices, below the statement that brought it or moved the model."""
    stray = ctx.stray
    if stray is None:
        return
    near = origins.near(ctx)
    if near is not None and not _follows(ctx, near):  # the optimizer's own step() makes it
        made = moves.where_made(ctx, near)
        if made is not None:
            yield made
    name, optimizer = _optimizer(ctx)
    if name is None:
        for owner, _ in owners(ctx):
            if placement.is_optimizer(owner):
                continue
            if not placement.is_module(owner):
                whole = move_object(ctx, owner)
                if whole is not None:
                    yield whole
        yield from at_use(ctx)
        return
    live_name = _name_in_workspace(ctx, name)
    counted = _uncounted(ctx, live_name) if live_name else None
    live = "\n".join(filter(None, (counted, _state_loop(ctx, optimizer, live_name)))) if live_name else None
    moved = _moved_on_the_way(ctx, name)
    for site, statement, here in [(*moved, name)] if moved is not None else _places(ctx, name):
        draft = ctx.draft(site.source)
        code = _state_loop(ctx, optimizer, here, site)
        if here == name and _runs(ctx, site, statement):  # nothing else is known: where it steps
            draft.before(_first_on_its_line(site.source, statement), code)
        else:
            draft.after(statement, code)
        proposal = Proposal(
            say("move the state of {name} to its parameters' devices", name=here),
            [draft],
            live=live,
            undo=counted,
            note=_said(counted is not None) if _counts(ctx) else "",
        )
        if ctx.fixes(proposal):
            yield proposal
            return


def _follows(ctx: Context, made: Step) -> bool:
    """``group["d"] = torch.zeros(1, device=p.device)``: made where it belongs, so what was loaded has replaced it."""
    statement = made.site.source.statement(made.site.node)
    said = getattr(statement, "value", None) or made.site.node
    calls = fresh(said, ctx.scope(made.site))
    devices = [keyword(call, "device") for call in calls]
    return bool(calls) and all(isinstance(device, ast.Attribute) and device.attr == "device" for device in devices)


def _said(counted: bool) -> str:
    return say(
        "Adam's 'step' stays on the host, where it belongs; the step() that failed has counted itself already, "
        "which is taken back"
        if counted
        else "Adam's 'step' stays on the host, where it belongs"
    )


def _first_on_its_line(source: Source, statement: ast.stmt) -> ast.stmt:
    """``opt.zero_grad()`` of ``opt.zero_grad(); loss.backward(); opt.step()``."""
    found = statement
    for _, block in ast.iter_fields(source.parent(statement) or statement):
        if isinstance(block, list) and statement in block:
            found = next(one for one in block if one.lineno == statement.lineno)
    return found


def _counts(ctx: Context) -> bool:
    """Does the optimizer keep numbers of steps?"""
    states: Any = attributes(ctx.stray.owner).get("state") if ctx.stray is not None else None
    held = list(dict.values(states)) if is_of(states, dict) else []
    return not held or any(type(state) is dict and "step" in state for state in held)


def _optimizer(ctx: Context) -> tuple[str | None, Any]:
    """What the failing code, or else the workspace, calls the optimizer; the optimizer."""
    stray = ctx.stray
    assert stray is not None
    for part in ast.walk(stray.site.node):
        if isinstance(part, (ast.Name, ast.Attribute, ast.Subscript)):
            live = ctx.value(Site(stray.site.source, part, stray.site.frame))
            if placement.is_optimizer(live):
                return stray.site.source.segment(part), live
    for name, live in list(ctx.finding.namespace.items()):
        if live is stray.owner and placement.is_optimizer(live) and not name.startswith("_"):
            return name, live
    return None, None


def _uncounted(ctx: Context, name: str) -> str | None:
    """Code that sets the steps back to what they were before the step() that failed: it counts before it computes.

    Where torch sorts tensors by device first (``_foreach_*`` on accelerators), it fails before it counts.
    """
    stray, said = ctx.stray, ctx.finding.mismatch.text
    if stray is None or not placement.is_optimizer(stray.owner) or not said or "same index" in said:
        return None  # also where nothing has failed: `ipydevice.remedies` has no text
    states = attributes(stray.owner).get("state")
    held = [state.get("step") for state in dict.values(states) if type(state) is dict] if states is not None else []
    if not held or not all(_is_host_number(step) for step in held):
        return None
    counts = {float(step) for step in held if step is not None}
    before = max(counts) - 1
    if min(counts) not in (before, max(counts)) or before < 0:
        return None  # parameters that joined later count by themselves
    state = "state" if "state" not in ctx.finding.namespace else "state_"
    return (
        f"for {state} in {name}.state.values():\n"
        f'    {state}["step"].fill_({before:g})  # {say("the step() that failed had counted already")}'
    )


def _is_host_number(step: Any) -> bool:
    return type(step) is torch_class("tensor") and placement.device_of(step) == "cpu" and placement.shape_of(step) == ()


def _state_loop(ctx: Context, optimizer: Any, name: str, site: Site | None = None) -> str:
    """Code that moves what the optimizer keeps, with names that are free at the place."""
    area = None if site is None else site.source.function(site.node)
    taken = {n.id for n in ast.walk(area) if isinstance(n, ast.Name)} if area is not None else ctx.finding.namespace
    return moving(optimizer, name, taken)


def _name_in_workspace(ctx: Context, name: str) -> str | None:
    """How a new cell reaches the optimizer."""
    if root(ast.parse(name, mode="eval").body) in ctx.finding.namespace:
        return name
    stray = ctx.stray
    path = (stray.path or "").partition(".state[")[0] if stray is not None else ""
    try:
        node = ast.parse(path, mode="eval").body
    except SyntaxError:
        return None
    found = value(node, Scope.of_namespace(ctx.finding.namespace))
    return path if stray is not None and found is stray.owner else None


def _places(ctx: Context, name: str) -> Iterator[tuple[Site, ast.stmt, str]]:
    """(place, statement behind which the state can be moved, what the optimizer is called there), the best first."""
    yield from _moved_in_functions(ctx)
    yield from ((site, statement, name) for site, statement in _after_state(ctx, name))
    path = _name_in_workspace(ctx, name)
    last = _last_move(ctx, path) if path is not None and path != name else None
    if path is not None and last is not None:  # what a method calls self.opt is run.opt in the cells
        yield (*last, path)
    stray = ctx.stray
    statement = stray.site.source.statement(stray.site.node) if stray is not None else None
    if stray is not None and statement is not None:
        yield Site(stray.site.source, statement, stray.site.frame), statement, name


def _moved_in_functions(ctx: Context) -> Iterator[tuple[Site, ast.stmt, str]]:
    """Moves of the model in functions that are over: ``self.model.to(d)`` in a method of what holds the optimizer."""
    stray = ctx.stray
    optimizer = stray.owner if stray is not None and placement.is_optimizer(stray.owner) else None
    if optimizer is None:
        return
    holders = [(live, name) for live in results.reachable(ctx) for name in _names_in(live, optimizer)]
    for source in classes.sources(ctx):
        for node in source.nodes:
            function, statement = source.function(node), source.statement(node)
            if not is_move(node) or function is None or isinstance(function, ast.Lambda) or statement is None:
                continue
            assert isinstance(node, ast.Call)
            assert isinstance(node.func, ast.Attribute)
            moved, site = node.func.value, Site(source, statement)
            base = root(moved)
            if base is None or base not in parameters(function):
                continue
            own = base == ctx.work.self_name(site)
            for holder, name in holders:
                if own and not any(holder is live for live in results.instances(ctx, source, node)):
                    continue
                here = f"{base}{name}"
                if _holds_its_parameters(value(moved, Scope({base: holder}, {})), optimizer) and not any(
                    isinstance(n, ast.Attribute) and isinstance(n.ctx, ast.Store) and source.segment(n) == here
                    for n in ast.walk(function)
                ):
                    yield site, statement, here
                    return


def _names_in(live: Any, optimizer: Any) -> Iterator[str]:
    """How an object gives the optimizer: ``.opt``, ``.optims['actor']``."""
    for name, held in list(attributes(live).items()) if not isinstance(live, ModuleType) else ():
        if not name.isidentifier():
            continue
        if held is optimizer:
            yield f".{name}"
        elif type(held) is dict:
            yield from (f".{name}[{key!r}]" for key, one in held.items() if one is optimizer and type(key) is str)
        elif type(held) in (list, tuple):
            yield from (f".{name}[{number}]" for number, one in enumerate(held) if one is optimizer)


def _after_state(ctx: Context, name: str) -> Iterator[tuple[Site, ast.stmt]]:
    """The statements behind which the state can be moved, the best first."""
    steps = [*reversed(ctx.chain), *reversed(ctx.finding.owner_chain)]
    for step in steps:
        if step.how in ("move", "item", "assignment", "attribute"):
            statement = _outer_statement(step)
            if (
                statement is not None
                and not _runs(ctx, step.site, statement)
                and _knows(ctx, step.site, statement, name)
            ):
                yield step.site, statement
    last = _last_move(ctx, name)
    if last is not None:
        yield last


def _moved_on_the_way(ctx: Context, name: str) -> tuple[Site, ast.stmt] | None:
    """The statement of a running function, or of the failed cell, that moves the optimizer's model."""
    start = [ctx.finding.start] if ctx.finding.start is not None else []
    for site in (ctx.finding.failed, *start, *(step.site for step in ctx.chain if step.site.frame is not None)):
        if site.frame is None:
            continue
        area = site.source.function(site.node) or site.source.tree
        running = site.frame.f_lineno
        optimizer = ctx.value(site, ast.parse(name, mode="eval").body)
        if not placement.is_optimizer(optimizer):
            continue
        for statement in reversed(getattr(area, "body", [])):
            if statement.end_lineno >= running:
                continue
            if any(_moves_model(ctx, site, node, optimizer) for node in ast.walk(statement)):
                return Site(site.source, statement, site.frame), statement
    return None


def _moves_model(ctx: Context, site: Site, node: ast.AST, optimizer: Any) -> bool:
    if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in ("to", "cuda")):
        return False
    return _holds_its_parameters(ctx.value(Site(site.source, node.func.value, site.frame)), optimizer)


def _holds_its_parameters(live: Any, optimizer: Any) -> bool:
    """Is it a module with parameters that the optimizer steps?"""
    groups = attributes(optimizer).get("param_groups")
    held = {id(p) for group in groups for p in group["params"]} if type(groups) is list else set()
    return placement.is_module(live) and any(id(found.value) in held for found in placement.walk(live))


def _outer_statement(step: Step) -> ast.stmt | None:
    """The statement at the level of its function or cell that the step belongs to."""
    source = step.site.source
    statement = source.statement(step.site.node)
    for up in source.ancestors(step.site.node):
        if isinstance(up, (ast.For, ast.AsyncFor, ast.While, ast.With, ast.If, ast.Try)):
            statement = up
        elif isinstance(up, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)):
            break
    return statement


def _runs(ctx: Context, site: Site, statement: ast.stmt) -> bool:
    """Is the failure inside the statement, so that nothing below it is reached?"""
    failed = ctx.finding.failed
    return site.source is failed.source and any(node is failed.node for node in ast.walk(statement))


def _knows(ctx: Context, site: Site, statement: ast.stmt, name: str) -> bool:
    """Is the optimizer made by then, and is this no statement that only makes it?"""
    base = name.split(".")[0]
    if base in bound([statement]) or _makes(site, statement, name) or _speaks_of_another(ctx, site, base):
        return False
    return ctx.work.available(Site(site.source, statement, site.frame), base)


def _speaks_of_another(ctx: Context, site: Site, base: str) -> bool:
    """Is the place in a function that does not know the global of that name, and may run before there is one?"""
    function = next(iter(ctx.work.functions(site.source, site.node)), None)
    return function is not None and not ctx.work.is_local(site, base) and base not in free(function)


def _makes(site: Site, statement: ast.stmt, name: str) -> bool:
    """``self.optim = Adam(...)``: it has no state by then."""
    parts = [n for t in statement.targets for n in ast.walk(t)] if isinstance(statement, ast.Assign) else []
    names = {site.source.segment(part) for part in parts if isinstance(part, (ast.Name, ast.Attribute, ast.Subscript))}
    return name in names or name.partition("[")[0] in names


def _last_move(ctx: Context, name: str) -> tuple[Site, ast.stmt] | None:
    """The last statement before the failure that moved a model or loaded the optimizer's state."""
    base = name.split(".")[0]
    for cell in reversed(ctx.work.order):
        source = classes.cell_source(ctx, cell)
        for statement in reversed(source.tree.body):
            if cell is ctx.work.failed and (statement.end_lineno or 0) >= ctx.failed_line:
                continue
            for node in ast.walk(statement):
                if _fills_state(node, base) and _knows(ctx, Site(source, statement), statement, name):
                    return Site(source, statement), statement
                handed = (
                    isinstance(node, ast.Call)
                    and isinstance(node.func, ast.Name)
                    and _moved_by_helper(ctx, source, node)
                )
                if handed and _knows(ctx, Site(source, statement), statement, name):
                    return Site(source, statement), statement
                if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
                    continue
                loads = node.func.attr == "load_state_dict" and root(node.func) == base
                lives = (ctx.finding.namespace.get(root(node.func) or ""), ctx.value(Site(source, node.func.value)))
                moved = node.func.attr in ("to", "cuda", "cpu") and any(map(placement.is_module, lives))
                if (loads or moved) and _knows(ctx, Site(source, statement), statement, name):
                    return Site(source, statement), statement
    return None


def _moved_by_helper(ctx: Context, source: Source, call: ast.Call) -> bool:
    """``to_card(net)``: does a function of the notebook move what it is given, and is that the optimizer's model?"""
    stray = ctx.stray
    lives = [ctx.value(Site(source, arg)) for arg in call.args] if isinstance(call.func, ast.Name) else []
    if stray is None or not any(_holds_its_parameters(live, stray.owner) for live in lives):
        return False
    for _, function in classes.functions_named(ctx, last_name(call.func)):
        if any(is_move(node) and root(node) in parameters(function) for node in ast.walk(function)):
            return True
    return False


def _fills_state(node: ast.AST, base: str) -> bool:
    """``optimizer.state[p] = ...``"""
    if not (isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store) and root(node) == base):
        return False
    return any(isinstance(n, ast.Attribute) and n.attr == "state" for n in ast.walk(node))
