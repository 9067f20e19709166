"""Where a tensor is made, and by which call."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ipydevice import placement
from ipydevice.diagnose.evaluate import MISSING
from ipydevice.diagnose.finding import Site, Step
from ipydevice.fixes import bindings, classes, earlier, operands, phrases
from ipydevice.fixes.context import Context, Proposal
from ipydevice.fixes.factories import fresh, make_on_device
from ipydevice.fixes.names import bound, last_name, root
from ipydevice.language import say

_MAKING = ("assignment", "attribute", "item", "expression", "return")


def near(ctx: Context) -> Step | None:
    """The step that makes the value, where nothing else needs it on the host."""
    for step in reversed(ctx.chain):
        if step.how not in _MAKING:
            continue
        value = step.value if isinstance(step.value, ast.expr) else None
        statement = step.site.source.statement(step.site.node)
        if isinstance(statement, (ast.Assign, ast.AnnAssign)) and step.how in ("assignment", "attribute"):
            value = statement.value
        if step.how == "expression" and isinstance(step.site.node, ast.expr):
            value = step.site.node
        if value is None or not fresh(value, ctx.scope(step.site)):
            continue
        if isinstance(statement, ast.Assign) and _shared(ctx, step, statement):
            continue
        if _is_tensor_step(ctx, step, statement):
            return step
    stray = ctx.stray
    if ctx.chain or stray is None or stray.member or not isinstance(stray.site.node, ast.expr):
        return None
    # Made on the spot, bound to no name.
    return Step("expression", stray.site, stray.site.node) if fresh(stray.site.node, ctx.scope(stray.site)) else None


def _is_tensor_step(ctx: Context, step: Step, statement: ast.stmt | None) -> bool:
    """Is what the step binds a tensor, and not a loader or dataset that holds many?"""
    if isinstance(statement, ast.Assign):
        targets = statement.targets[0].elts if isinstance(statement.targets[0], ast.Tuple) else statement.targets
        lives = [ctx.value(Site(step.site.source, target, step.site.frame)) for target in targets]
        return all(live is MISSING or placement.is_tensor(live) for live in lives)
    return step.how in ("expression", "item", "return")


def _shared(ctx: Context, step: Step, statement: ast.Assign) -> bool:
    """Is a name of the statement also wanted on the host, or did it meet host tensors before?"""
    area = next(iter(ctx.work.functions(step.site.source, statement)), None)
    names = [n.id for t in statement.targets for n in ast.walk(t) if isinstance(n, ast.Name)]
    if any(operands.wanted_on_host(ctx, name, area) for name in names):
        return True
    return any(earlier.last_met(ctx, name, step.site, statement) is not None for name in names)


def made_by_functions(ctx: Context) -> Iterator[Proposal]:
    """``hidden = model.init_hidden(3)``: the factories in what the function returns."""
    stray = ctx.stray
    name = root(stray.site.node) if stray is not None else None
    if stray is None or name is None:
        return
    site = stray.site
    area = next(iter(ctx.work.functions(site.source, site.node)), site.source.tree)
    calls = [
        node.value
        for node in ast.walk(area)
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call) and name in bound([node])
    ]
    step = bindings.last_binding(ctx, name)
    if step is not None and isinstance(step.value, ast.Call):
        calls.append(step.value)
    for call in calls:
        yield from _returned_factories(ctx, last_name(call.func))


def _returned_factories(ctx: Context, name: str) -> Iterator[Proposal]:
    for source in classes.sources(ctx):
        for node in source.nodes:
            if not (isinstance(node, ast.FunctionDef) and node.name == name):
                continue
            draft = ctx.draft(source)
            device = None
            for inner in ast.walk(node):
                value = inner.value if isinstance(inner, (ast.Return, ast.Assign)) else None
                if value is not None and fresh(value, ctx.scope(Site(source, inner))):
                    device = make_on_device(ctx, draft, Site(source, value), value)
            if device is not None:
                yield Proposal(
                    say("make what {name}() returns on {device}", name=name, device=phrases.spoken(device)), [draft]
                )
                return
