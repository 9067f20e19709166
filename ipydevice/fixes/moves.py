"""Moving a value: where a loop hands it out, where it is made, where it is passed, where it is used."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

from ipydevice import placement
from ipydevice.diagnose.evaluate import MISSING, Scope, attribute
from ipydevice.diagnose.evaluate import value as value_of
from ipydevice.diagnose.finding import Site, Step
from ipydevice.diagnose.infer import device_name
from ipydevice.fixes.context import Context, Proposal
from ipydevice.fixes.edits import Draft
from ipydevice.fixes.factories import make_on_device
from ipydevice.fixes.names import bound, last_name, parameters, root
from ipydevice.fixes.workspace import outermost_loop
from ipydevice.placement.kinds import torch_class

# Seen around a name, these say that it is wanted on the host there.
_HOST_METHODS = frozenset(["numpy", "cpu", "tolist", "item", "size", "dim", "numel"])
_HOST_ROOTS = frozenset(["np", "numpy", "plt", "sns", "pd", "ax", "axes", "sklearn", "scipy"])
_LOADERS = frozenset(["DataLoader", "TensorDataset", "Subset", "random_split"])


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
        if (name in wrong and (live is MISSING or placement.is_tensor(live))) or (live is not MISSING and ctx.strays_like(live) and _meets_others(ctx, site, body, name)):
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
    for statement in body:
        for node in ast.walk(statement):
            if isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Load):
                if is_operand(ctx, site, node):
                    return True
    return False


def is_operand(ctx: Context, site: Site, node: ast.AST) -> bool:
    """Does the value meet other tensors there, rather than being collected, counted or given to the host?"""
    parent = site.source.parent(node)
    match parent:
        case ast.List(elts=elts) | ast.Tuple(elts=elts) if len(elts) > 1 and isinstance(parent.ctx, ast.Load):
            return _goes_together(site, parent)
        case ast.keyword() | ast.List() | ast.Tuple() | ast.Starred():
            return not isinstance(getattr(parent, "ctx", None), ast.Store) and is_operand(ctx, site, parent)
        case ast.Subscript(value=value, slice=index):
            indexed = ctx.value(Site(site.source, value, site.frame))
            return index is node and placement.is_tensor(indexed)
        case ast.Call(args=args, keywords=keywords):
            if parent.func is node or root(parent.func) in _HOST_ROOTS or last_name(parent.func) in _LOADERS:
                return False
            others = [a for a in (*args, *keywords) if a is not node and not isinstance(_bare(a), ast.Constant)]
            if isinstance(parent.func, ast.Attribute):
                if parent.func.attr in ("append", "extend", "update", "to", "add", "insert", "put", "tensor"):
                    return False
                receiver = ctx.value(Site(site.source, parent.func.value, site.frame))
                if placement.is_tensor(receiver) or (receiver is MISSING and _is_tensor_method(parent.func.attr)):
                    return not any(_to_host(a) for a in others)
            model = placement.is_module(ctx.value(Site(site.source, parent.func, site.frame)))
            return (bool(others) or model) and not any(_to_host(a) for a in others)
        case ast.BinOp(left=left, right=right):
            other = right if left is node else left
            return not isinstance(other, ast.Constant) and not _to_host(other)
        case ast.Compare(left=left, comparators=comparators):
            rest = [a for a in (left, *comparators) if a is not node]
            return not any(isinstance(a, ast.Constant) or _to_host(a) for a in rest)
        case ast.Attribute(attr=attr) if attr not in _HOST_METHODS and attr not in ("shape", "dtype", "device"):
            call = site.source.parent(parent)  # x.view(-1) meets what x meets
            return isinstance(call, ast.Call) and call.func is parent and is_operand(ctx, site, call)
        case _:
            return False


def _is_tensor_method(name: str) -> bool:
    tensor = torch_class("tensor")
    return tensor is not None and name in tensor.__mro__[1].__dict__  # torch._C.TensorBase has the operators


def _goes_together(site: Site, parts: ast.AST) -> bool:
    """``torch.cat([a, b])``: do the items of a list meet in one call?"""
    call = site.source.parent(parts)
    if isinstance(call, ast.keyword):
        call = site.source.parent(call)
    if not isinstance(call, ast.Call) or root(call.func) in _HOST_ROOTS or last_name(call.func) in _LOADERS:
        return False
    return last_name(call.func) not in ("append", "extend", "print", "zip", "len", "enumerate", "list", "tuple")


def _bare(node: ast.AST) -> ast.AST:
    return node.value if isinstance(node, ast.keyword) else node


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


def _assigned(
    ctx: Context, site: Site, statement: ast.Assign | ast.AnnAssign, target: ast.expr, step: Step
) -> Proposal | None:
    value = statement.value
    assert value is not None
    if not isinstance(target, (ast.Tuple, ast.List)):
        live = ctx.value(Site(site.source, target, site.frame))
        if live is not MISSING and live is not None and not placement.is_tensor(live) and step.how != "item":
            return None
        part = (
            step.value
            if isinstance(step.value, ast.expr) and _within(value, step.value) and step.how == "item"
            else value
        )
        return _value_moved(ctx, site, part, site.source.segment(target))
    names = [e.id for e in target.elts if isinstance(e, ast.Name)]
    wrong = _stray_names(ctx)
    if isinstance(value, ast.Tuple) and len(value.elts) == len(target.elts):
        draft = ctx.draft(site.source)
        moved = []
        for element, part in zip(target.elts, value.elts, strict=True):
            live = target_value(ctx, site, element)
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


def target_value(ctx: Context, site: Site, target: ast.expr) -> Any:
    """What an assignment's target is by now: of its frame, or ``self.x`` of the object that holds the stray."""
    live = ctx.value(Site(site.source, target, site.frame))
    stray = ctx.stray
    if live is MISSING and stray is not None and isinstance(target, ast.Attribute) and root(target) == "self":
        for owner in (stray.owner, stray_owner(ctx)):
            class_node = site.source.class_of(target)
            if owner is not None and class_node is not None:
                if any(cls.__name__ == class_node.name for cls in type(owner).__mro__):
                    return attribute(owner, target.attr)
    return live


def stray_owner(ctx: Context) -> Any:
    """The object by which the workspace reaches the stray: ``lvm`` of ``lvm._scale``."""
    stray = ctx.stray
    if stray is None or stray.path is None:
        return None
    try:
        node = ast.parse(stray.path, mode="eval").body
    except SyntaxError:
        return None
    while isinstance(node, ast.Subscript):
        node = node.value
    if not isinstance(node, ast.Attribute):
        return None
    found = value_of(node.value, Scope.of_namespace(ctx.finding.namespace))
    return None if found is MISSING else found


def _value_moved(ctx: Context, site: Site, value: ast.expr, name: str) -> Proposal | None:
    draft = ctx.draft(site.source)
    made = make_on_device(ctx, draft, site, value, avoid=tuple(_stray_names(ctx)))
    if made is not None:
        others = _made_beside(ctx, draft, site, value)
        return Proposal(f"make {_listed([name, *others])} on {spoken(made)}", [draft])
    draft = ctx.draft(site.source)
    if not _suffix_move(ctx, draft, site, value):
        return None
    return Proposal(f"move {name} where it is made", [draft])


def _move_value(ctx: Context, draft: Draft, site: Site, value: ast.expr) -> bool:
    return make_on_device(ctx, draft, site, value, avoid=tuple(_stray_names(ctx))) is not None or _suffix_move(
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
    if isinstance(value, (ast.Dict, ast.Constant, ast.Set, ast.Lambda)) or _is_parameter(value):
        return False
    device = ctx.device(Site(site.source, value, site.frame), avoid=_stray_names(ctx))
    if device is None:
        return False
    if isinstance(value, ast.Call) and last_name(value.func) == "to" and len(value.args) == 1 and not value.keywords:
        if device_name(ctx.value(Site(site.source, value.args[0], site.frame))) is not None:
            draft.replace(value.args[0], device)  # moved already, to the wrong place
            return True
    draft.suffix(value, to(device))
    return True


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
    met = {site.source.segment(use) for use in _next_strays(ctx, stray.site)}
    found: list[str] = []
    for _, block in ast.iter_fields(parent):
        if not (isinstance(block, list) and statement in block):
            continue
        for other in block:
            if other is statement or not isinstance(other, ast.Assign) or len(other.targets) != 1:
                continue
            name = site.source.segment(other.targets[0])
            together = _passed_together(site, statement, name)
            if name in met or together or ctx.strays_like(_held_by_owner(ctx, other.targets[0])):
                if make_on_device(ctx, draft, Site(site.source, other.value, site.frame), other.value) is not None:
                    found.append(name)
    return found


def _held_by_owner(ctx: Context, target: ast.expr) -> Any:
    stray = ctx.stray
    if stray is None or stray.owner is None or not isinstance(target, ast.Attribute) or root(target) != "self":
        return MISSING
    return attribute(stray.owner, target.attr)


def _passed_together(site: Site, statement: ast.stmt | None, name: str) -> bool:
    """``lstm(x, (h0, c0))``: what is handed over in one tuple is met in one call."""
    if not isinstance(statement, ast.Assign):
        return False
    own = site.source.segment(statement.targets[0])
    area = site.source.function(statement) or site.source.tree
    for node in ast.walk(area):
        if isinstance(node, ast.Tuple) and isinstance(node.ctx, ast.Load):
            texts = [site.source.segment(e) for e in node.elts]
            if own in texts and name in texts:
                return True
    return False


def spoken(device: str) -> str:
    return f"{device[: -len('.device')]}'s device" if device.endswith(".device") else device


def _within(outer: ast.AST, inner: ast.AST) -> bool:
    return any(node is inner for node in ast.walk(outer))


# -- where it is used -------------------------------------------------------------------------


def where_used(ctx: Context) -> Proposal | None:
    """``model(x.to(device))``, with the other host tensors that this code would meet next."""
    stray = ctx.stray
    if stray is None or not isinstance(stray.site.node, ast.expr):
        return None
    if stray.member:
        return _member_moved(ctx)
    site, node = stray.site, stray.site.node
    if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
        return None
    if stray.known and not placement.is_tensor(stray.value):
        return None
    uses = [node, *(use for use in _next_strays(ctx, site) if not _inside(node, use))]
    if any(written_in_place(site, use) for use in uses):
        return None
    texts = [site.source.segment(use) for use in uses]
    names = list(dict.fromkeys(u.id for u in uses if isinstance(u, ast.Name) and _is_variable(ctx, site, u)))
    loop = outermost_loop(site.source, node)
    if isinstance(node, ast.Name) and node.id in names:
        if loop is not None and all(ctx.work.available(Site(site.source, loop, site.frame), name) for name in names):
            return _before(ctx, site, loop, names, "once, before the loop")
        if len(set(texts)) < len(texts):
            statement = site.source.statement(node)
            if statement is None or not all(
                ctx.work.available(Site(site.source, statement, site.frame), n) for n in names
            ):
                return None
            return _before(ctx, site, statement, names, "before it is used")
    device = ctx.device(site, avoid=_stray_names(ctx) | set(names))
    if device is None:
        return None
    draft = ctx.draft(site.source)
    for use in uses:
        draft.suffix(use, to(device))
    return Proposal(f"move {_listed(list(dict.fromkeys(texts)))} where it is used", [draft])


def to(device: str) -> str:
    """The move as a suffix: ``.to(x.device)``, ``.cpu()``."""
    return ".cpu()" if device == '"cpu"' else f".to({device})"


def _inside(outer: ast.AST, inner: ast.AST) -> bool:
    return any(part is inner for part in ast.walk(outer)) or any(part is outer for part in ast.walk(inner))


def _is_variable(ctx: Context, site: Site, node: ast.Name) -> bool:
    """A name that a statement may bind: none of a comprehension or lambda."""
    here = Site(site.source, node, site.frame)
    function = next(iter(ctx.work.functions(site.source, node)), None)
    if isinstance(function, ast.Lambda):
        return False
    statement = site.source.statement(node)
    return statement is not None and (
        not ctx.work.is_local(here, node.id) or ctx.work.is_local(Site(site.source, statement, site.frame), node.id)
    )


def written_in_place(site: Site, node: ast.AST) -> bool:
    """Is the value written where it stands: ``x.add_(y)``, ``x += y``, ``x[i] = y``, ``out=x``? A copy would lose it."""
    source = site.source
    parent = source.parent(node)
    if isinstance(parent, ast.Attribute) and parent.attr.endswith("_") and not parent.attr.endswith("__"):
        return isinstance(source.parent(parent), ast.Call)
    if isinstance(parent, ast.Subscript) and parent.value is node and not isinstance(parent.ctx, ast.Load):
        return True
    if isinstance(parent, ast.AugAssign) and parent.target is node:
        return True
    return isinstance(parent, ast.keyword) and parent.arg == "out"


def _before(ctx: Context, site: Site, statement: ast.stmt, names: list[str], when: str) -> Proposal | None:
    device = ctx.device(Site(site.source, statement, site.frame), avoid=names)
    if device is None:
        return None
    draft = ctx.draft(site.source)
    draft.before(statement, _move_all(names, [f"{name}{to(device)}" for name in names]))
    return Proposal(f"move {_listed(names)} {when}", [draft])


def _next_strays(ctx: Context, site: Site) -> list[ast.expr]:
    """Uses, from the failing statement on, of the stray and of other tensors that would be the next error."""
    found: list[ast.expr] = []
    gone: set[str] = set()
    own = site.source.segment(site.node)
    for statement in _rest(site):
        for node in _widest(statement):
            if root(node) in gone:
                continue
            live = ctx.value(Site(site.source, node, site.frame))
            if live is MISSING or not ctx.strays_like(live):
                continue
            if is_operand(ctx, site, node) or site.source.segment(node) == own:
                if not _only_shape(site, node):
                    found.append(node)
        gone |= bound([statement])
    return found


def _only_shape(site: Site, node: ast.AST) -> bool:
    parent = site.source.parent(node)
    return isinstance(parent, ast.Attribute) and parent.attr in ("shape", "dtype", "device", *_HOST_METHODS)


def _widest(statement: ast.AST) -> Iterator[ast.expr]:
    """The names, attributes and items that a statement reads, ``a.b[0]`` as one."""
    for child in ast.iter_child_nodes(statement):
        if isinstance(child, (ast.Name, ast.Attribute, ast.Subscript)) and _is_chain(child):
            if isinstance(child.ctx, ast.Load):
                yield child
            yield from (n.slice for n in ast.walk(child) if isinstance(n, ast.Subscript) and isinstance(n.slice, ast.Name))
            continue
        yield from _widest(child)


def _is_chain(node: ast.AST) -> bool:
    while isinstance(node, (ast.Attribute, ast.Subscript)):
        if isinstance(node, ast.Subscript) and not isinstance(node.slice, (ast.Constant, ast.Name)):
            return False
        node = node.value
    return isinstance(node, ast.Name)


def _rest(site: Site) -> list[ast.stmt]:
    """The failing statement and those behind it in its block."""
    statement = site.source.statement(site.node)
    parent = site.source.parent(statement) if statement is not None else None
    for _, block in ast.iter_fields(parent) if parent is not None else ():
        if isinstance(block, list) and statement in block:
            return list(block[block.index(statement) :])
    return []


def _member_moved(ctx: Context) -> Proposal | None:
    """``batch["labels"] = batch["labels"].to(device)`` above the failing statement."""
    stray = ctx.stray
    assert stray is not None
    site = Site(stray.site.source, stray.site.node, stray.site.frame)
    statement = site.source.statement(site.node)
    base = ctx.value(site)
    if statement is None or not placement.is_tensor(stray.value) or placement.is_parameter(stray.value):
        return None
    if (
        base is MISSING
        or placement.is_module(base)
        or placement.is_optimizer(base)
        or stray.via in ("closure", "buffer")
    ):
        return None
    try:
        whole = ast.parse(stray.expression, mode="eval").body
    except SyntaxError:
        return None
    inner = whole.value if isinstance(whole, (ast.Attribute, ast.Subscript)) else None
    holder = ctx.value(site, inner) if inner is not None else MISSING
    if not isinstance(whole, (ast.Attribute, ast.Subscript)) or holder is MISSING or isinstance(holder, tuple):
        return None
    names = {n.id for n in ast.walk(whole) if isinstance(n, ast.Name)}
    place = Site(site.source, statement, site.frame)
    if not all(ctx.work.available(place, name) for name in names):
        return None
    device = ctx.device(place, avoid=names)
    if device is None:
        return None
    draft = ctx.draft(site.source)
    draft.before(statement, f"{stray.expression} = {stray.expression}{to(device)}")
    return Proposal(f"move {stray.expression} before it is used", [draft])


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
    if not isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef)) or stray.site.node.id not in parameters(
        function
    ):
        return None
    place = Site(site.source, function.body[0], site.frame)
    anchor, call = existing_move(ctx, place, function.body, [site.node.id])  # type: ignore[attr-defined]
    if anchor is None or call is None:
        return None
    return _beside_moves(
        ctx, place, function.body, [stray.site.node.id], f"move {stray.site.node.id} beside the others"
    )


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
