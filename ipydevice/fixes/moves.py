"""Moving a value: where a loop hands it out, where it is made, where it is passed, where it is used."""

from __future__ import annotations

import ast
from typing import Any

from ipydevice import placement
from ipydevice.diagnose.evaluate import MISSING, attribute
from ipydevice.diagnose.finding import Site, Step
from ipydevice.diagnose.infer import call_name, device_name
from ipydevice.diagnose.source import once_a_node
from ipydevice.fixes.context import Context, Proposal
from ipydevice.fixes.edits import Draft
from ipydevice.fixes.factories import follows_already, fresh, is_gathering, left_to_caller, make_on_device
from ipydevice.fixes.in_place import changed_in_place
from ipydevice.fixes.meetings import would_be_stray
from ipydevice.fixes.names import bound, last_name, parameters, root
from ipydevice.fixes.operands import is_operand, meets_home
from ipydevice.fixes.phrases import listed, move_all, moved_where_made, spoken, stray_names, target_value, to
from ipydevice.fixes.uses import next_strays
from ipydevice.language import say

# -- in the loop ----------------------------------------------------------------------------


def in_loop(ctx: Context, step: Step) -> Proposal | None:
    """Move what the loop hands out at the top of its body, beside the moves that stand there."""
    loop = step.site.node
    if not isinstance(loop, (ast.For, ast.AsyncFor)):
        return None
    site = Site(step.site.source, loop.body[0], step.site.frame)
    names = _wanted(ctx, site, loop.target, loop.body)
    if not names or (
        not _hands_out_batches(ctx, site, loop.iter) and any(changed_in_place(site.source, n, loop) for n in names)
    ):
        return None  # a copy would be changed in its place
    return _beside_moves(ctx, site, loop.body, names, say("move {names} in the loop", names=listed(names)))


def _hands_out_batches(ctx: Context, site: Site, given: ast.expr) -> bool:
    """Does the loop go through a loader, which makes each batch anew?"""
    parts = (node for node in ast.walk(given) if isinstance(node, (ast.Name, ast.Attribute)))
    return any(placement.kind_of(ctx.value(Site(site.source, part, site.frame))) == "loader" for part in parts)


def _wanted(ctx: Context, site: Site, target: ast.AST, body: list[ast.stmt]) -> list[str]:
    """Of the names that `target` binds, the stray one and those that would be met next."""
    names = [n.id for n in ast.walk(target) if isinstance(n, ast.Name)]
    names.sort(key=lambda n: _first_position(target, n))
    stray = ctx.stray
    wrong = stray_names(ctx)
    if stray is not None and stray.known:
        for name in names:
            live = ctx.work.value(site, name)
            if live is not MISSING and placement.is_tensor(live) and placement.same(live, stray.value):
                wrong.add(name)
    chosen = []
    for name in names:
        live = ctx.work.value(site, name)
        if (name in wrong and (live is MISSING or placement.is_tensor(live))) or (
            _meets_others(ctx, site, body, name)
            if live is not MISSING and ctx.strays_like(live)
            else live is MISSING and would_be_stray(ctx, site, body, name)
        ):
            chosen.append(name)
    return chosen if wrong & set(chosen) or ctx.finding.read is None else []


def _first_position(target: ast.AST, name: str) -> tuple[int, int]:
    return min((n.lineno, n.col_offset) for n in ast.walk(target) if isinstance(n, ast.Name) and n.id == name)


def _meets_others(ctx: Context, site: Site, body: list[ast.stmt], name: str) -> bool:
    """Is the name an operand beside other values, so that it would be the next stray?"""
    for statement in body:
        for node in ast.walk(statement):
            if (
                isinstance(node, ast.Name)
                and node.id == name
                and isinstance(node.ctx, ast.Load)
                and is_operand(ctx, site, node)
            ):
                return True
    return False


def _beside_moves(ctx: Context, site: Site, block: list[ast.stmt], names: list[str], title: str) -> Proposal | None:
    """Insert the move of `names` below the moves in `block` that come before their first use, else at its top."""
    draft = ctx.draft(site.source)
    anchor, call = existing_move(ctx, site, block, names)
    if anchor is not None and call is not None:
        draft.after(anchor, move_all(names, [_imitated(ctx, site, call, name) for name in names]))
        return Proposal(title, [draft], certain=True)
    device = ctx.device(site, avoid=names)
    if device is None:
        return None
    draft.top_of(block, move_all(names, [f"{name}.to({device})" for name in names]))
    return Proposal(title, [draft])


def beside_unpacked(ctx: Context) -> Proposal | None:
    """``x, pad = collate(batch)`` and ``x = x.to(device)``: pad is moved there too."""
    stray = ctx.stray
    step = ctx.chain[0] if ctx.chain else None
    if stray is None or step is None or step.how != "assignment" or not isinstance(stray.site.node, ast.Name):
        return None
    source, name = step.site.source, stray.site.node.id
    statement = source.statement(step.site.node)
    parent = source.parent(statement) if statement is not None else None
    if not isinstance(statement, ast.Assign) or not isinstance(statement.targets[0], ast.Tuple) or parent is None:
        return None
    if isinstance(statement.value, ast.Tuple) and any(_is_move(part) for part in statement.value.elts):
        return where_made(ctx, step)  # "x, y = x.to(device), y"
    for _, block in ast.iter_fields(parent):
        if isinstance(block, list) and statement in block:
            rest = block[block.index(statement) + 1 :]
            site = Site(source, statement, step.site.frame)
            anchor, call = existing_move(ctx, site, rest, [name])
            if anchor is not None and call is not None and bound([anchor]) & bound([statement]):
                return _beside_moves(ctx, site, rest, [name], say("move {name} beside the others", name=name))
    return None


def existing_move(
    ctx: Context, site: Site, block: list[ast.stmt], names: list[str]
) -> tuple[ast.stmt | None, ast.Call | None]:
    """The last of the statements ``x = x.to(device)`` that stand before any of `names` is used."""
    found: tuple[ast.stmt | None, ast.Call | None] = (None, None)
    for statement in block:
        if isinstance(statement, ast.Assign):
            values = statement.value.elts if isinstance(statement.value, ast.Tuple) else [statement.value]
            moves = [v for v in values if isinstance(v, ast.Call) and _is_move(v)]
            if len(moves) == len(values) and _reaches_target(ctx, site, statement):
                found = (statement, moves[-1])
                continue
        if any(isinstance(n, ast.Name) and n.id in names for n in ast.walk(statement)):
            break
    return found


def _is_move(node: ast.AST) -> bool:
    if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in ("to", "cuda")):
        return False
    return (
        isinstance(node.func.value, ast.Name)
        and len(node.args) <= 1
        and all(k.arg == "non_blocking" for k in node.keywords)
    )


def _reaches_target(ctx: Context, site: Site, statement: ast.Assign) -> bool:
    for name in bound([statement]):
        live = ctx.work.value(site, name)
        if live is not MISSING and placement.is_tensor(live):
            return ctx.target is None or placement.device_of(live) == ctx.target
    read = ctx.finding.read  # of a text: where its value moves to
    return read is not None and read(Site(site.source, statement.value)) == ctx.target


def _imitated(ctx: Context, site: Site, call: ast.Call, name: str) -> str:
    """``x.to(device, non_blocking=True)`` said of another name."""
    assert isinstance(call.func, ast.Attribute)
    text = site.source.segment(call)
    return name + text[len(site.source.segment(call.func.value)) :]


# -- where it is made -------------------------------------------------------------------------


def where_made(ctx: Context, step: Step) -> Proposal | None:
    """Make or move the value in the statement that binds it."""
    site, node = step.site, step.site.node
    if step.how == "argument":
        return where_passed(ctx, step)
    if meets_home(ctx, site):
        return None
    if step.how == "expression" and isinstance(node, ast.expr):
        return _value_moved(ctx, site, node, site.source.segment(node))
    statement = site.source.statement(node)
    if isinstance(statement, (ast.Assign, ast.AnnAssign)) and statement.value is not None:
        targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
        return _assigned(ctx, site, statement, targets[0], step)
    if isinstance(statement, ast.Return) and statement.value is not None:
        return _value_moved(ctx, site, statement.value, say("what it returns"))
    if step.value is not None and isinstance(step.value, ast.expr):
        return _value_moved(ctx, site, step.value, site.source.segment(step.value))
    return None


def _assigned(
    ctx: Context, site: Site, statement: ast.Assign | ast.AnnAssign, target: ast.expr, step: Step
) -> Proposal | None:
    value = statement.value
    assert value is not None
    if not isinstance(target, (ast.Tuple, ast.List)):
        live = ctx.value(Site(site.source, target, site.frame))
        plain = live is MISSING or live is None or placement.is_tensor(live) or _all_strays(ctx, live)
        if not plain and step.how != "item":
            return None
        part = (
            step.value
            if isinstance(step.value, ast.expr) and _within(value, step.value) and step.how == "item"
            else value
        )
        return _value_moved(ctx, site, part, site.source.segment(target))
    names = [e.id for e in target.elts if isinstance(e, ast.Name)]
    wrong = stray_names(ctx)
    if isinstance(value, ast.Tuple) and len(value.elts) == len(target.elts):
        draft = ctx.draft(site.source)
        moved = []
        for element, part in zip(target.elts, value.elts, strict=True):
            live = target_value(ctx, site, element)
            stray = ctx.strays_like(live) if live is not MISSING else ctx.is_stray(Site(site.source, part, site.frame))
            if site.source.segment(element) in wrong or stray:
                if not _move_value(ctx, draft, site, part):
                    return None
                moved.append(site.source.segment(element))
        return Proposal(moved_where_made(moved), [draft]) if moved else None
    chosen = [n for n in names if n in wrong or ctx.strays_like(ctx.work.value(site, n))]
    place = Site(site.source, statement, site.frame)
    device = ctx.device(place, avoid=names)
    if not chosen or device is None:
        return None
    draft = ctx.draft(site.source)
    draft.after(statement, move_all(chosen, [f"{name}.to({device})" for name in chosen]))
    return Proposal(moved_where_made(chosen), [draft])


def _all_strays(ctx: Context, live: Any) -> bool:
    """A list or dict of tensors, each of them as stray as the one that failed."""
    parts = list(live.values()) if type(live) is dict else list(live) if type(live) in (list, tuple) else []
    return bool(parts) and all(ctx.strays_like(part) for part in parts)


def _value_moved(ctx: Context, site: Site, value: ast.expr, name: str) -> Proposal | None:
    if follows_already(ctx, site, value):
        return None
    draft = ctx.draft(site.source)
    made = make_on_device(ctx, draft, site, value, avoid=tuple(stray_names(ctx)))
    if made is not None:
        others = _made_beside(ctx, draft, site, value)
        return Proposal(say("make {names} on {device}", names=listed([name, *others]), device=spoken(made)), [draft])
    draft = ctx.draft(site.source)
    if left_to_caller(site, fresh(value, ctx.scope(site))) or not _suffix_move(ctx, draft, site, value):
        return None
    return Proposal(say("move {name} where it is made", name=name), [draft])


def _move_value(ctx: Context, draft: Draft, site: Site, value: ast.expr) -> bool:
    return make_on_device(ctx, draft, site, value, avoid=tuple(stray_names(ctx))) is not None or _suffix_move(
        ctx, draft, site, value
    )


def _suffix_move(ctx: Context, draft: Draft, site: Site, value: ast.expr) -> bool:
    if isinstance(value, (ast.ListComp, ast.GeneratorExp, ast.DictComp)) and _is_choice(value):
        return False
    if isinstance(value, (ast.ListComp, ast.GeneratorExp)):
        return _suffix_move(ctx, draft, site, value.elt)
    if isinstance(value, ast.DictComp):
        return _suffix_move(ctx, draft, site, value.value)
    if isinstance(value, (ast.List, ast.Tuple)):
        return bool(value.elts) and all(_move_value(ctx, draft, site, part) for part in value.elts)
    if isinstance(value, ast.Call) and is_gathering(value):
        return isinstance(value.args[0], _GATHERED) and _suffix_move(ctx, draft, site, value.args[0])
    if isinstance(value, (ast.Dict, ast.Constant, ast.Set, ast.Lambda)) or _is_parameter(value):
        return False
    device = ctx.device(Site(site.source, value, site.frame), avoid=stray_names(ctx))
    if device is None:
        return False
    if (
        isinstance(value, ast.Call)
        and last_name(value.func) == "to"
        and len(value.args) == 1
        and not value.keywords
        and device_name(ctx.value(Site(site.source, value.args[0], site.frame))) is not None
    ):
        draft.replace(value.args[0], device)  # moved already, to the wrong place
        return True
    if isinstance(value, ast.Call) and call_name(value, ctx.scope(site)) == "load":
        draft.keyword(value, "map_location", device)  # what comes from a file may be a dict
        return True
    draft.suffix(_before_it_learns(value), to(device))
    return True


_GATHERED = (ast.ListComp, ast.GeneratorExp, ast.List, ast.Tuple)


def _before_it_learns(value: ast.expr) -> ast.expr:
    """``x`` of ``x.requires_grad_()``: moved afterwards it is no leaf any more, and gets no gradient."""
    while isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and value.func.attr in _LEARNING:
        value = value.func.value
    return value


_LEARNING = ("requires_grad_", "retain_grad")


def _is_choice(value: ast.ListComp | ast.GeneratorExp | ast.DictComp) -> bool:
    """``{k: v.to(d) if ... else v ...}``: not every item can be moved."""
    return isinstance(value.value if isinstance(value, ast.DictComp) else value.elt, ast.IfExp)


def _is_parameter(value: ast.expr) -> bool:
    """``nn.Parameter(...)``: moved afterwards it is no parameter any more."""
    return isinstance(value, ast.Call) and last_name(value.func) in ("Parameter", "Buffer", "UninitializedParameter")


def _made_beside(ctx: Context, draft: Draft, site: Site, value: ast.expr) -> list[str]:
    """Fresh tensors of the same block that the failing code meets next are made there too; their names."""
    stray = ctx.stray
    statement = site.source.statement(value)
    parent = site.source.parent(statement) if statement is not None else None
    if stray is None or parent is None:
        return []
    met = {stray.site.source.segment(use) for use in next_strays(ctx, stray.site)}
    found: list[str] = []
    for _, block in ast.iter_fields(parent):
        if not (isinstance(block, list) and statement in block):
            continue
        for other in block:
            if other is statement or not isinstance(other, ast.Assign) or len(other.targets) != 1:
                continue
            name = site.source.segment(other.targets[0])
            together = _passed_together(site, statement, name)
            if (
                name in met or together or ctx.strays_like(_held_by_owner(ctx, site, other.targets[0]))
            ) and make_on_device(ctx, draft, Site(site.source, other.value, site.frame), other.value) is not None:
                found.append(name)
    return found


def _held_by_owner(ctx: Context, site: Site, target: ast.expr) -> Any:
    stray = ctx.stray
    if (
        stray is None
        or stray.owner is None
        or not isinstance(target, ast.Attribute)
        or root(target) != ctx.work.self_name(site)
    ):
        return MISSING
    return attribute(stray.owner, target.attr)


def _passed_together(site: Site, statement: ast.stmt | None, name: str) -> bool:
    """``lstm(x, (h0, c0))``: what is handed over in one tuple is met in one call."""
    if not isinstance(statement, ast.Assign):
        return False
    own = site.source.segment(statement.targets[0])
    for node in _tuples(site.source.function(statement) or site.source.tree):
        texts = [site.source.segment(e) for e in node.elts]
        if own in texts and name in texts:
            return True
    return False


@once_a_node
def _tuples(area: ast.AST) -> list[ast.Tuple]:
    """All that are handed over below a function or a cell, and not taken apart."""
    return [node for node in ast.walk(area) if isinstance(node, ast.Tuple) and isinstance(node.ctx, ast.Load)]


def _within(outer: ast.AST, inner: ast.AST) -> bool:
    return any(node is inner for node in ast.walk(outer))


# -- where it is passed -----------------------------------------------------------------------


def where_passed(ctx: Context, step: Step) -> Proposal | None:
    """``predict(probe.to(device))`` at the call that hands it in."""
    value = step.value
    if step.how != "argument" or value is None or isinstance(value, (ast.Constant, ast.Starred)):
        return None
    site = Site(step.site.source, value, step.site.frame)
    live = ctx.value(site)
    if live is not MISSING and not placement.is_tensor(live):
        return None
    proposal = _value_moved(ctx, site, value, site.source.segment(value))
    if proposal is not None:
        proposal.title = say("move {name} in the call", name=site.source.segment(value))
    return proposal


def beside_other_arguments(ctx: Context) -> Proposal | None:
    """A function that moves its other parameters moves this one too."""
    stray = ctx.stray
    if stray is None or not isinstance(stray.site.node, ast.Name):
        return None
    site = stray.site
    function = next(iter(ctx.work.functions(site.source, site.node)), None)
    if not isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef)) or stray.site.node.id not in parameters(
        function
    ):
        return None
    place = Site(site.source, function.body[0], site.frame)
    anchor, call = existing_move(ctx, place, function.body, [site.node.id])  # type: ignore[attr-defined]
    if anchor is None or call is None:
        return None
    return _beside_moves(
        ctx, place, function.body, [stray.site.node.id], say("move {name} beside the others", name=stray.site.node.id)
    )
