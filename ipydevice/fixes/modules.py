"""Modules that were left behind, and things that nn.Module does not know it has."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from typing import Any

from ipydevice import placement
from ipydevice.diagnose.evaluate import MISSING, attribute
from ipydevice.diagnose.finding import Site, Step
from ipydevice.diagnose.infer import FACTORIES, call_name
from ipydevice.diagnose.source import Source
from ipydevice.fixes import bindings, classes, phrases
from ipydevice.fixes.context import Context, Proposal
from ipydevice.fixes.device_expr import is_target
from ipydevice.fixes.factories import fresh
from ipydevice.fixes.names import bound, last_name, root
from ipydevice.fixes.workspace import outermost_loop
from ipydevice.language import say
from ipydevice.placement.kinds import attributes

# -- a whole module on the wrong device -------------------------------------------------------


def module_left_behind(ctx: Context) -> Iterator[Proposal]:
    """``.to(device)`` where the module is constructed; a line above its use where that would not last."""
    above = above_the_use(ctx)
    if above is not None and (_is_sent_home(ctx) or _worked_before(ctx)):
        yield above
        return
    steps = [*bindings.of_module(ctx)]
    known = _module_steps(ctx)[::-1]
    inside = [s for s in known if s.site.source.class_of(s.site.node) is not None]
    around = [*bindings.of_outer_module(ctx)]
    # A layer set in a class is the business of whoever moves the whole module.
    order = [*steps, *around, *known] if len(inside) == len(known) else [*steps, *known, *around]
    made = (p for step in order if (p := constructed(ctx, step)) is not None)
    first = next(made, None)
    if first is not None:
        yield first
    if above is not None:
        yield above


def _is_sent_home(ctx: Context) -> bool:
    """Is the module handed, after it is made, to a function of the notebook that moves it as it likes?"""
    stray = ctx.stray
    name = root(stray.site.node) if stray is not None else None
    if name is None:
        return False
    if _owner_takes_home(ctx):
        return True
    for cell in ctx.work.order:
        own = ctx.work.effects(cell)
        for node in own.nodes:
            if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Name)):
                continue
            given = [a.id for a in node.args if isinstance(a, ast.Name)]
            for earlier in ctx.work.order if name in given else ():
                definition = ctx.work.effects(earlier).definitions.get(node.func.id)
                if isinstance(definition, ast.FunctionDef) and given.index(name) < len(definition.args.args):
                    parameter = definition.args.args[given.index(name)].arg
                    if _moves(definition, parameter):
                        return True
    return False


def _owner_takes_home(ctx: Context) -> bool:
    """Does an object that keeps the module know the target as its device, though the module is elsewhere?

    Then it has moved the module there, and home again since.
    """
    stray = ctx.stray
    module = None if stray is None else stray.value if placement.is_module(stray.value) else stray.owner
    for live in list(ctx.finding.namespace.values()) if placement.is_module(module) else ():
        if placement.is_module(live) or not any(held is module for held in list(attributes(live).values())):
            continue
        if is_target(ctx.work, attribute(live, "device")):
            return True
    return False


def _worked_before(ctx: Context) -> bool:
    """Did an earlier cell call the module with tensors that are still where the module is?

    Moved where it is made, it would fail there when the notebook runs from the top.
    """
    stray = ctx.stray
    if stray is None:
        return False
    wanted = stray.value if placement.is_module(stray.value) else stray.owner
    for cell in ctx.work.order:
        if cell is ctx.work.failed or cell.success is False:
            continue
        source = classes.cell_source(ctx, cell)
        for call in ctx.work.effects(cell).nodes:
            if not (isinstance(call, ast.Call) and isinstance(call.func, ast.Name)):
                continue
            if ctx.finding.namespace.get(call.func.id) is not wanted or wanted is None:
                continue
            given = (ctx.value(Site(source, arg)) for arg in call.args if isinstance(arg, (ast.Name, ast.Attribute)))
            if any(placement.is_tensor(live) and placement.device_of(live) == stray.device for live in given):
                return True
    return False


def _moves(function: ast.FunctionDef, parameter: str) -> bool:
    moves = [
        node
        for node in ast.walk(function)
        if isinstance(node, ast.Call) and last_name(node.func) in ("to", "cpu", "cuda") and root(node.func) == parameter
    ]
    return len(moves) > 1 or any(last_name(m.func) == "cpu" for m in moves)


def _module_steps(ctx: Context) -> list[Step]:
    """The steps by which the module came about, the constructor last."""
    stray = ctx.stray
    if stray is not None and not placement.is_module(stray.value) and placement.is_module(stray.owner):
        return ctx.finding.owner_chain or ctx.chain
    return ctx.chain or ctx.finding.owner_chain


def constructed(ctx: Context, step: Step) -> Proposal | None:
    """``Net()`` becomes ``Net().to(device)`` in the statement of this step."""
    site = step.site
    statement = site.source.statement(site.node)
    value: ast.AST | None = step.value
    target: ast.expr | None = None
    if isinstance(statement, (ast.Assign, ast.AnnAssign)) and step.how in ("assignment", "attribute", "item"):
        value = statement.value
        target = statement.targets[0] if isinstance(statement, ast.Assign) else statement.target
        if isinstance(value, ast.Tuple) and isinstance(target, ast.Tuple) and len(target.elts) == len(value.elts):
            value, target = _element(ctx, site, target, value)
    elif step.how == "expression" and isinstance(site.node, ast.expr):
        value = site.node
    elif step.how not in ("item", "return", "expression"):
        return None
    if target is not None and not _may_be_module(phrases.target_value(ctx, site, target)):
        return None
    calls = list(_constructors(value))
    if not calls or any(last_name(call.func) in ("Parameter", "Buffer") for call in calls):
        return None
    if any(fresh(call, ctx.scope(site)) and call_name(call, ctx.scope(site)) in FACTORIES for call in calls):
        return None
    draft = ctx.draft(site.source)
    names = frozenset(bound([statement])) if statement is not None else frozenset()
    device: str | None = None
    for call in calls:
        device = ctx.device(Site(site.source, call, site.frame), avoid=names)
        if device is None:
            return None
        present = _move_in_chain(call)
        if present is not None:
            draft.replace(present.args[0], device) if present.args else draft.suffix(call, f".to({device})")
        else:
            draft.suffix(call, f".to({device})")
    name = site.source.segment(target) if target is not None else site.source.segment(calls[0])
    live = live_move(ctx)
    here = workspace_device(ctx)
    if isinstance(target, ast.Name) and here is not None and placement.is_module(ctx.finding.namespace.get(target.id)):
        live = f"{target.id}.to({here})"
    return Proposal(say("move {name} where it is made", name=name), [draft], live=live)


def _may_be_module(live: Any) -> bool:
    if live is MISSING or placement.is_module(live):
        return True
    parts = list(live.values()) if type(live) is dict else list(live) if type(live) in (list, tuple) else []
    return bool(parts) and all(placement.is_module(part) for part in parts)


def _element(ctx: Context, site: Site, target: ast.Tuple, value: ast.Tuple) -> tuple[ast.expr, ast.expr]:
    stray = ctx.stray
    wanted = {id(stray.value), id(stray.owner)} if stray is not None else set()
    names = {root(stray.site.node)} if stray is not None else set()
    for one, part in zip(target.elts, value.elts, strict=True):
        live = ctx.value(Site(site.source, one, site.frame))
        if live is not MISSING and id(live) in wanted:
            return part, one
    for one, part in zip(target.elts, value.elts, strict=True):
        if root(one) in names:
            return part, one
    return value, target


def _constructors(value: ast.AST | None) -> Iterator[ast.Call]:
    """The calls whose results are the value, the elements' where it is a list of them."""
    match value:
        case ast.Call():
            yield value
        case ast.ListComp() | ast.GeneratorExp():
            yield from _constructors(value.elt)
        case ast.DictComp():
            yield from _constructors(value.value)
        case ast.List() | ast.Tuple():
            for part in value.elts:
                yield from _constructors(part)
        case ast.Dict():
            for part in value.values:
                yield from _constructors(part)
        case ast.IfExp():
            yield from _constructors(value.body)
            yield from _constructors(value.orelse)
        case _:
            return


def _move_in_chain(call: ast.Call) -> ast.Call | None:
    """The ``.to(...)`` that the value ends with already."""
    if isinstance(call.func, ast.Attribute) and call.func.attr == "to" and len(call.args) == 1:
        return call
    return None


def live_move(ctx: Context) -> str | None:
    """Code that moves the live module: ``teacher.to(device)``."""
    stray = ctx.stray
    if stray is None:
        return None
    path = stray.path
    if placement.is_module(stray.owner) and not placement.is_module(stray.value):
        path = classes.owner_path(ctx)
    elif not placement.is_module(stray.value):
        return None
    device = workspace_device(ctx)
    return None if path is None or device is None else f"{path}.to({device})"


def workspace_device(ctx: Context) -> str | None:
    """The target device said in a new cell below the failed one."""
    failed = ctx.work.failed
    if failed is None:
        return None
    source = classes.cell_source(ctx, failed)
    if not source.tree.body:
        return None
    return ctx.device(Site(source, source.tree.body[0], None))


def live_name(ctx: Context, dotted: str) -> str:
    """torch's name in the workspace, or an import that gives it."""

    torch = sys.modules.get("torch")
    for name, live in list(ctx.finding.namespace.items()):
        if torch is not None and live is torch.nn and not name.startswith("_"):
            return f"{name}.{dotted.split('.', 1)[1]}"
    for name, live in list(ctx.finding.namespace.items()):
        if torch is not None and live is torch and not name.startswith("_"):
            return f"{name}.{dotted}"
    return f"__import__('torch').{dotted}"


def above_the_use(ctx: Context) -> Proposal | None:
    """``model.to(device)`` above the statement that uses it, outside of loops."""
    stray = ctx.stray
    if stray is None or not isinstance(stray.site.node, ast.expr):
        return None
    site, expression = stray.site, stray.site.node
    value = ctx.value(site)
    if value is MISSING or not placement.is_module(value):
        found = _module_in_loop(ctx)
        if found is None:
            return None
        expression = found
    name = site.source.segment(expression)
    if name == ctx.work.self_name(site):
        return None  # a module does not move itself while it runs
    statement: ast.stmt | None = site.source.statement(expression)
    loop = outermost_loop(site.source, expression)
    base = root(expression)
    names = {n.id for n in ast.walk(expression) if isinstance(n, ast.Name)}  # "bag" and "fold" of bag[fold]
    before = Site(site.source, loop, site.frame) if loop is not None else site
    if loop is not None and not names & bound([loop]) and all(ctx.work.available(before, n) for n in names):
        statement = loop
    if statement is None or not all(ctx.work.available(Site(site.source, statement, site.frame), n) for n in names):
        return None  # handed out by a comprehension
    device = ctx.device(Site(site.source, statement, site.frame), avoid=[base] if base else [])
    if device is None:
        return None
    draft = ctx.draft(site.source)
    draft.before(statement, f"{name}.to({device})")
    return Proposal(
        say("move {name} before it is used", name=name),
        [draft],
        live=None,
        note=say("moves nothing when it is there already"),
    )


def _module_in_loop(ctx: Context) -> ast.expr | None:
    """``self.shadow`` of ``for a, p in zip(self.shadow.parameters(), ...)``: the module that holds the stray."""
    stray = ctx.stray
    step = ctx.chain[0] if ctx.chain else None
    if (
        stray is None
        or step is None
        or step.how != "loop"
        or step.value is None
        or step.site.source is not stray.site.source
    ):
        return None
    for node in ast.walk(step.value):
        if isinstance(node, (ast.Name, ast.Attribute)):
            live = ctx.value(Site(step.site.source, node, step.site.frame))
            if placement.is_module(live) and any(f.value is stray.value for f in placement.walk(live)):
                return node
    return None


# -- moved layer by layer ---------------------------------------------------------------------


def moved_in_pieces(ctx: Context, owner: Any) -> tuple[Site, ast.stmt] | None:
    """The last statement that moves layers of a module of the workspace, where nothing moves the module as a whole.

    What belongs to the module itself stays behind then, a buffer as well.
    """
    if any(ctx.target == placement.device_of(m.value) for m in placement.members(owner) if m.via in _OWN):
        return None
    last: tuple[Site, ast.stmt] | None = None
    for cell in ctx.work.order:
        source = classes.cell_source(ctx, cell)
        for node in source.nodes:
            if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _MOVES):
                continue
            if any(True for _ in ctx.work.functions(source, node)):
                return None  # a function's own business: whose it is, its text does not tell
            site = Site(source, node)
            receiver, statement = _layers_of(source, node.func.value), outermost_loop(source, node)
            live = ctx.value(site, receiver)
            if receiver is not node.func.value:
                if live is owner:
                    last = site, statement or source.statement(node) or source.tree.body[-1]
                continue
            if not placement.is_module(live):
                if isinstance(receiver, ast.Call):
                    return None  # "Net().to(device)": it may be that one
                continue
            if _holds(live, owner):
                return None
            if _holds(owner, live):
                last = site, statement or source.statement(node) or source.tree.body[-1]
    return last


_OWN = ("parameter", "buffer")
_MOVES = ("to", "cuda", "xpu")
_CHILDREN = ("children", "modules", "named_children")


def _layers_of(source: Source, node: ast.expr) -> ast.expr:
    """``net`` for the ``m`` of ``for m in net.children()``, else the node itself."""
    for up in source.ancestors(node):
        for loop in getattr(up, "generators", [up] if isinstance(up, ast.For) else []):
            names = {n.id for n in ast.walk(loop.target) if isinstance(n, ast.Name)}
            given = loop.iter
            if not (isinstance(node, ast.Name) and node.id in names and isinstance(given, ast.Call)):
                continue
            if isinstance(given.func, ast.Attribute) and given.func.attr in _CHILDREN:
                return given.func.value
    return node


def _holds(module: Any, wanted: Any) -> bool:
    return module is wanted or any(found.value is wanted for found in placement.walk(module))
