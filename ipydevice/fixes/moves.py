"""Moving a value: where a loop hands it out, where it is made, where it is passed, where it is used."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ipydevice import placement
from ipydevice.diagnose.evaluate import MISSING
from ipydevice.diagnose.finding import Site, Step
from ipydevice.fixes.context import Context, Proposal
from ipydevice.fixes.factories import make_on_device
from ipydevice.fixes.names import bound, last_name, parameters, root
from ipydevice.fixes.workspace import outermost_loop

# Seen around a name, these say that it is wanted on the host there.
_HOST_METHODS = frozenset("numpy cpu tolist item size dim numel".split())
_HOST_ROOTS = frozenset("np numpy plt sns pd ax axes sklearn scipy".split())
_LOADERS = frozenset("DataLoader TensorDataset Subset random_split".split())


# -- in the loop ----------------------------------------------------------------------------


def in_loop(ctx: Context, step: Step) -> Proposal | None:
    """Move what the loop hands out at the top of its body, beside the moves that stand there."""
    loop = step.site.node
    if not isinstance(loop, (ast.For, ast.AsyncFor)):
        return None
    site = Site(step.site.source, loop.body[0], step.site.frame)
    names = _wanted(ctx, site, loop.target, loop.body)
    if not names:
        return None
    return _beside_moves(ctx, site, loop.body, names, f"move {_listed(names)} in the loop")


def _wanted(ctx: Context, site: Site, target: ast.AST, body: list[ast.stmt]) -> list[str]:
    """Of the names that `target` binds, the stray one and those that would be met next."""
    names = [n.id for n in ast.walk(target) if isinstance(n, ast.Name)]
    names.sort(key=lambda n: _first_position(target, n))
    stray = ctx.stray
    wrong = _stray_names(ctx)
    if stray is not None and stray.known:
        for name in names:
            live = ctx.work.value(site, name)
            if live is not MISSING and placement.is_tensor(live) and placement.same(live, stray.value):
                wrong.add(name)
    chosen = []
    for name in names:
        live = ctx.work.value(site, name)
        if name in wrong and (live is MISSING or placement.is_tensor(live)):
            chosen.append(name)
        elif live is not MISSING and ctx.strays_like(live) and _meets_others(ctx, site, body, name):
            chosen.append(name)
    return chosen


def _stray_names(ctx: Context) -> set[str]:
    """The names that the stray has on its way, at its use and in the steps behind it."""
    found: set[str] = set()
    if ctx.stray is not None:
        found |= {r for r in [root(ctx.stray.site.node)] if r}
    for step in ctx.chain:
        if step.how in ("assignment", "argument") and step.value is not None:
            found |= {r for r in [root(step.value)] if r}
    return found


def _first_position(target: ast.AST, name: str) -> tuple[int, int]:
    return min((n.lineno, n.col_offset) for n in ast.walk(target) if isinstance(n, ast.Name) and n.id == name)


def _meets_others(ctx: Context, site: Site, body: list[ast.stmt], name: str) -> bool:
    """Is the name an operand beside other values, so that it would be the next stray?"""
    source = site.source
    for statement in body:
        for node in ast.walk(statement):
            if isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Load):
                if _is_operand(source.parent(node), node):
                    return True
    return False


def _is_operand(parent: ast.AST | None, node: ast.AST) -> bool:
    match parent:
        case ast.Call(args=args, keywords=keywords):
            others = [a for a in (*args, *(k.value for k in keywords)) if a is not node]
            if parent.func is node or root(parent.func) in _HOST_ROOTS or last_name(parent.func) in _LOADERS:
                return False
            tensors = [a for a in others if not isinstance(a, ast.Constant)]
            method = isinstance(parent.func, ast.Attribute) and last_name(parent.func) in ("append", "extend", "update", "to")
            return bool(tensors) and not method and not any(_to_host(a) for a in tensors)
        case ast.keyword():
            return False
        case ast.BinOp(left=left, right=right):
            other = right if left is node else left
            return not isinstance(other, ast.Constant) and not _to_host(other)
        case ast.Compare(left=left, comparators=comparators):
            others = [a for a in (left, *comparators) if a is not node]
            return not any(isinstance(a, ast.Constant) or _to_host(a) for a in others)
        case _:
            return False


def _to_host(node: ast.AST) -> bool:
    return any(isinstance(n, ast.Call) and last_name(n.func) in ("cpu", "numpy", "tolist") for n in ast.walk(node))


def _beside_moves(ctx: Context, site: Site, block: list[ast.stmt], names: list[str], title: str) -> Proposal | None:
    """Insert the move of `names` below the moves in `block` that come before their first use, else at its top."""
    draft = ctx.draft(site.source)
    anchor, call = existing_move(ctx, site, block, names)
    if anchor is not None and call is not None:
        draft.after(anchor, _move_all(names, [_imitated(ctx, site, call, name) for name in names]))
        return Proposal(title, [draft], certain=True)
    device = ctx.device(site, avoid=names)
    if device is None:
        return None
    draft.top_of(block, _move_all(names, [f"{name}.to({device})" for name in names]))
    return Proposal(title, [draft])


def existing_move(
    ctx: Context, site: Site, block: list[ast.stmt], names: list[str]
) -> tuple[ast.stmt | None, ast.Call | None]:
    """The last of the statements ``x = x.to(device)`` that stand before any of `names` is used."""
    found: tuple[ast.stmt | None, ast.Call | None] = (None, None)
    for statement in block:
        if isinstance(statement, ast.Assign):
            values = statement.value.elts if isinstance(statement.value, ast.Tuple) else [statement.value]
            moves = [v for v in values if _is_move(v)]
            if len(moves) == len(values) and _reaches_target(ctx, site, statement):
                found = (statement, moves[-1])
                continue
        if any(isinstance(n, ast.Name) and n.id in names for n in ast.walk(statement)):
            break
    return found


def _is_move(node: ast.AST) -> bool:
    if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in ("to", "cuda")):
        return False
    return isinstance(node.func.value, ast.Name) and len(node.args) <= 1 and all(k.arg == "non_blocking" for k in node.keywords)


def _reaches_target(ctx: Context, site: Site, statement: ast.Assign) -> bool:
    for name in bound([statement]):
        live = ctx.work.value(site, name)
        if live is not MISSING and placement.is_tensor(live):
            return ctx.target is None or placement.device_of(live) == ctx.target
    return False


def _imitated(ctx: Context, site: Site, call: ast.Call, name: str) -> str:
    """``x.to(device, non_blocking=True)`` said of another name."""
    assert isinstance(call.func, ast.Attribute)
    text = site.source.segment(call)
    return name + text[len(site.source.segment(call.func.value)) :]


def _move_all(names: list[str], moved: list[str]) -> str:
    return f"{', '.join(names)} = {', '.join(moved)}"


def _listed(names: list[str]) -> str:
    return names[0] if len(names) == 1 else ", ".join(names[:-1]) + " and " + names[-1]


# -- where it is made -------------------------------------------------------------------------


def where_made(ctx: Context, step: Step) -> Proposal | None:
    """Make or move the value in the statement that binds it."""
    site, node = step.site, step.site.node
    if step.how == "expression" and isinstance(node, ast.expr):
        return _value_moved(ctx, site, node, site.source.segment(node))
    statement = site.source.statement(node)
    if isinstance(statement, (ast.Assign, ast.AnnAssign)) and statement.value is not None:
        targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
        return _assigned(ctx, site, statement, targets[0], step)
    if isinstance(statement, ast.Return) and statement.value is not None:
        return _value_moved(ctx, site, statement.value, "what it returns")
    if step.value is not None and isinstance(step.value, ast.expr):
        return _value_moved(ctx, site, step.value, site.source.segment(step.value))
    return None


def _assigned(ctx: Context, site: Site, statement: ast.Assign | ast.AnnAssign, target: ast.expr, step: Step) -> Proposal | None:
    value = statement.value
    assert value is not None
    if not isinstance(target, (ast.Tuple, ast.List)):
        part = step.value if isinstance(step.value, ast.expr) and _within(value, step.value) and step.how == "item" else value
        return _value_moved(ctx, site, part, site.source.segment(target))
    names = [e.id for e in target.elts if isinstance(e, ast.Name)]
    wrong = _stray_names(ctx)
    if isinstance(value, ast.Tuple) and len(value.elts) == len(target.elts):
        draft = ctx.draft(site.source)
        moved = []
        for element, part in zip(target.elts, value.elts, strict=True):
            live = ctx.value(Site(site.source, element, site.frame))
            if site.source.segment(element) in wrong or (live is not MISSING and ctx.strays_like(live)):
                if not _move_value(ctx, draft, site, part):
                    return None
                moved.append(site.source.segment(element))
        return Proposal(f"move {_listed(moved)} where they are made", [draft]) if moved else None
    chosen = [n for n in names if n in wrong or ctx.strays_like(ctx.work.value(site, n))]
    place = Site(site.source, statement, site.frame)
    device = ctx.device(place, avoid=names)
    if not chosen or device is None:
        return None
    draft = ctx.draft(site.source)
    draft.after(statement, _move_all(chosen, [f"{name}.to({device})" for name in chosen]))
    return Proposal(f"move {_listed(chosen)} where they are made", [draft])


def _value_moved(ctx: Context, site: Site, value: ast.expr, name: str) -> Proposal | None:
    draft = ctx.draft(site.source)
    made = make_on_device(ctx, draft, site, value, avoid=tuple(_stray_names(ctx)))
    if made is not None:
        return Proposal(f"make {name} on {_spoken(made)}", [draft])
    draft = ctx.draft(site.source)
    if not _suffix_move(ctx, draft, site, value):
        return None
    return Proposal(f"move {name} where it is made", [draft])


def _move_value(ctx: Context, draft, site: Site, value: ast.expr) -> bool:  # type: ignore[no-untyped-def]
    return make_on_device(ctx, draft, site, value, avoid=tuple(_stray_names(ctx))) is not None or _suffix_move(
        ctx, draft, site, value
    )


def _suffix_move(ctx: Context, draft, site: Site, value: ast.expr) -> bool:  # type: ignore[no-untyped-def]
    device = ctx.device(Site(site.source, value, site.frame), avoid=_stray_names(ctx))
    if device is None or isinstance(value, (ast.List, ast.Dict, ast.ListComp, ast.DictComp, ast.Constant, ast.Set)):
        return False
    draft.suffix(value, f".to({device})")
    return True


def _spoken(device: str) -> str:
    return f"{device[: -len('.device')]}'s device" if device.endswith(".device") else device


def _within(outer: ast.AST, inner: ast.AST) -> bool:
    return any(node is inner for node in ast.walk(outer))


# -- where it is used -------------------------------------------------------------------------


def where_used(ctx: Context) -> Proposal | None:
    """``model(x.to(device))``, with the other host tensors that this code would meet next."""
    stray = ctx.stray
    if stray is None or stray.member or not isinstance(stray.site.node, ast.expr):
        return None
    site = stray.site
    names = _companions(ctx, site) if isinstance(site.node, ast.Name) else []
    loop = outermost_loop(site.source, site.node)
    if isinstance(site.node, ast.Name) and _is_store(site.node):
        return None
    plain = isinstance(site.node, ast.Name) and ctx.work.available(site, site.node.id)
    if plain and loop is not None and ctx.work.available(Site(site.source, loop, site.frame), site.node.id):
        return _before(ctx, site, loop, [site.node.id, *names])
    device = ctx.device(site, avoid=_stray_names(ctx))
    if device is None:
        return None
    draft = ctx.draft(site.source)
    draft.suffix(site.node, f".to({device})")
    for node in _later_uses(ctx, site, names):
        draft.suffix(node, f".to({device})")
    return Proposal(f"move {_listed([site.source.segment(site.node), *names])} where it is used", [draft])


def _is_store(node: ast.Name) -> bool:
    return not isinstance(node.ctx, ast.Load)


def _before(ctx: Context, site: Site, statement: ast.stmt, names: list[str]) -> Proposal | None:
    device = ctx.device(Site(site.source, statement, site.frame), avoid=names)
    if device is None:
        return None
    draft = ctx.draft(site.source)
    draft.before(statement, _move_all(names, [f"{name}.to({device})" for name in names]))
    return Proposal(f"move {_listed(names)} once, before the loop", [draft])


def _companions(ctx: Context, site: Site) -> list[str]:
    """Other host tensors, used from the failing statement on, that would be the next error."""
    found = []
    own = root(site.node)
    for node in _rest(site):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.id != own and node.id not in found:
            live = ctx.work.value(site, node.id)
            if live is not MISSING and ctx.strays_like(live) and _is_operand(site.source.parent(node), node):
                found.append(node.id)
    return found


def _later_uses(ctx: Context, site: Site, names: list[str]) -> Iterator[ast.Name]:
    for node in _rest(site):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.id in names:
            if _is_operand(site.source.parent(node), node):
                yield node


def _rest(site: Site) -> Iterator[ast.AST]:
    """The nodes of the failing statement and of those behind it in its block."""
    statement = site.source.statement(site.node)
    if statement is None:
        return
    parent = site.source.parent(statement)
    for _, block in ast.iter_fields(parent) if parent is not None else ():
        if isinstance(block, list) and statement in block:
            for later in block[block.index(statement) :]:
                yield from ast.walk(later)


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
        proposal.title = f"move {site.source.segment(value)} in the call"
    return proposal


def beside_other_arguments(ctx: Context) -> Proposal | None:
    """A function that moves its other parameters moves this one too."""
    stray = ctx.stray
    if stray is None or not isinstance(stray.site.node, ast.Name):
        return None
    site = stray.site
    function = next(iter(ctx.work.functions(site.source, site.node)), None)
    if not isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef)) or stray.site.node.id not in parameters(function):
        return None
    place = Site(site.source, function.body[0], site.frame)
    anchor, call = existing_move(ctx, place, function.body, [site.node.id])  # type: ignore[attr-defined]
    if anchor is None or call is None:
        return None
    return _beside_moves(ctx, place, function.body, [stray.site.node.id], f"move {stray.site.node.id} beside the others")


def wanted_on_host(ctx: Context, name: str) -> bool:
    """Is this global name also used where only the host will do: numpy, plots, data loaders?"""
    for cell in ctx.work.order:
        tree = ctx.work.effects(cell).tree
        parents = {child: node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}
        for node in ast.walk(tree):
            if not (isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Load)):
                continue
            up: ast.AST | None = parents.get(node)
            while up is not None and not isinstance(up, ast.stmt):
                if isinstance(up, ast.Call):
                    called = last_name(up.func)
                    if called in ("numpy", *_LOADERS) or root(up.func) in _HOST_ROOTS:
                        return True
                up = parents.get(up)
    return False
