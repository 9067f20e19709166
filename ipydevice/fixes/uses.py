"""Where a value is used: moving it there, and what else would be met next."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from types import MethodType
from typing import Any

from ipydevice import placement
from ipydevice.diagnose.evaluate import MISSING, attribute, is_of
from ipydevice.diagnose.finding import Site
from ipydevice.diagnose.source import Source
from ipydevice.fixes.context import Context, Proposal
from ipydevice.fixes.in_place import changed_in_place, written_in_place
from ipydevice.fixes.names import bound, root
from ipydevice.fixes.objects import is_frozen, move_parts, tensor_parts
from ipydevice.fixes.operands import HOST_METHODS, VIEWS, attribute_wanted_on_host, is_operand
from ipydevice.fixes.phrases import flat_move, listed, move_all, moved_where_used, stray_names, to
from ipydevice.fixes.workspace import outermost_loop
from ipydevice.language import say
from ipydevice.placement.tensors import read


def where_used(ctx: Context) -> Proposal | None:
    """``model(x.to(device))``, with the other host tensors that this code would meet next."""
    stray = ctx.stray
    if stray is None or not isinstance(stray.site.node, ast.expr) or stray.device == ctx.target:
        return None
    if stray.member:
        return _member_moved(ctx)
    site, node = stray.site, stray.site.node
    if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
        return None
    if isinstance(node, _COLLECTIONS) or _handed_out(site.source, node) is not None:
        return _items_moved(ctx, site)
    live = stray.value if stray.known else ctx.value(site)
    if live is not MISSING and not placement.is_tensor(live):
        return None
    uses = [node, *(use for use in next_strays(ctx, site) if not _inside(node, use))]
    if any(written_in_place(site, use) for use in uses):
        return None
    if changed_in_place(site.source, site.source.segment(node), site.source.statement(node)):
        return None
    texts = [site.source.segment(use) for use in uses]
    names = list(dict.fromkeys(u.id for u in uses if isinstance(u, ast.Name) and _is_variable(ctx, site, u)))
    loop = outermost_loop(site.source, node)
    learns = read(live, "requires_grad") is True and read(live, "is_leaf") is True
    if isinstance(node, ast.Name) and node.id in names and not learns:  # a copy under its name would learn nothing
        before = Site(site.source, loop, site.frame) if loop is not None else site
        if (
            loop is not None
            and not set(names) & bound(_body(loop))
            and all(ctx.work.available(before, n) for n in names)
        ):
            return _before(ctx, site, loop, names, say("move {names} once, before the loop", names=listed(names)))
        if len(set(texts)) < len(texts):
            statement = site.source.statement(node)
            if statement is None or not all(
                ctx.work.available(Site(site.source, statement, site.frame), n) for n in names
            ):
                return None
            return _before(
                ctx,
                site,
                statement,
                names,
                say("move {name} before it is used", name=names[0])
                if len(names) == 1
                else say("move {names} before they are used", names=listed(names)),
            )
    device = ctx.device(site, avoid=names)  # what is on the target here and now is not the stray
    if device is None:
        return None
    draft = ctx.draft(site.source)
    for use in uses:
        draft.suffix(use, to(device))
    texts = list(dict.fromkeys(texts))
    return Proposal(moved_where_used(texts), [draft])


def at_the_failing_line(ctx: Context) -> Proposal | None:
    """All tensors on the wrong device that the line that failed uses, and those behind it, moved there."""
    failed = ctx.finding.failed
    met = [use for use in next_strays(ctx, failed) if not written_in_place(failed, use)]
    area = failed.source.statement(failed.node)
    if any(changed_in_place(failed.source, failed.source.segment(use), area) for use in met):
        return None
    device = ctx.device(failed, avoid={r for use in met if (r := root(use))}) if met else None
    if device is None:
        return None
    draft = ctx.draft(failed.source)
    for use in met:
        draft.suffix(use, to(device))
    texts = list(dict.fromkeys(failed.source.segment(use) for use in met))
    return Proposal(moved_where_used(texts), [draft], note=say("copies on every call"))


def bound_again(ctx: Context) -> bool:
    """Does a loop bind the stray's name anew, behind its use, when its first value came from before the loop?"""
    stray = ctx.stray
    if stray is None or stray.member or not isinstance(stray.site.node, ast.Name) or not ctx.chain:
        return False
    source, name = stray.site.source, stray.site.node.id
    loop = outermost_loop(source, stray.site.node)
    first = ctx.chain[0].site
    if loop is None or (first.source is source and any(node is first.node for node in ast.walk(loop))):
        return False
    line = stray.site.node.lineno
    return any(
        isinstance(node, ast.stmt) and node.lineno > line and not hasattr(node, "body") and name in bound([node])
        for node in ast.walk(loop)
    )


def _body(loop: ast.stmt) -> list[ast.stmt]:
    return [*getattr(loop, "body", []), *getattr(loop, "orelse", [])]


def _items_moved(ctx: Context, site: Site) -> Proposal | None:
    """``[f(x).to(device) for x in xs]``: a list has no ``to``, what is in it has."""
    items = items_at(site)
    if isinstance(site.node, (ast.List, ast.Tuple, ast.Set)):
        lives = [(item, ctx.value(Site(site.source, item, site.frame))) for item in items]
        items = [item for item, live in lives if live is MISSING or ctx.strays_like(live)]
    if not items or any(isinstance(item, (ast.IfExp, ast.Starred, *_COLLECTIONS)) for item in items):
        return None
    device = ctx.device(Site(site.source, items[0], site.frame), avoid=stray_names(ctx))
    if device is None:
        return None
    draft = ctx.draft(site.source)
    for item in items:
        draft.suffix(item, to(device))
    texts = [site.source.segment(item) for item in items]
    texts = list(dict.fromkeys(texts))
    return Proposal(moved_where_used(texts), [draft])


def items_at(site: Site) -> list[ast.expr]:
    """The expressions for what is in the list at `site`: in its brackets, or where a loop over it uses them."""
    node = site.node
    if isinstance(node, (ast.ListComp, ast.GeneratorExp, ast.SetComp)):
        return [node.elt]
    if isinstance(node, ast.DictComp):
        return [node.value]
    if isinstance(node, (ast.List, ast.Tuple, ast.Set)):
        return [part for part in node.elts if not isinstance(part, ast.Constant)]
    loop = _handed_out(site.source, node)
    if loop is None or isinstance(loop, ast.DictComp):
        return []
    name = loop.generators[0].target
    if not isinstance(name, ast.Name) or len(loop.generators) > 1:
        return []
    return [n for n in ast.walk(loop.elt) if isinstance(n, ast.Name) and n.id == name.id]


_COLLECTIONS = (ast.ListComp, ast.GeneratorExp, ast.SetComp, ast.DictComp, ast.List, ast.Tuple, ast.Set, ast.Dict)


def _handed_out(source: Source, node: ast.AST) -> ast.ListComp | ast.GeneratorExp | ast.SetComp | ast.DictComp | None:
    """The comprehension that hands out, one by one, what is in `node`."""
    generator = source.parent(node)
    whole = source.parent(generator) if isinstance(generator, ast.comprehension) and generator.iter is node else None
    return whole if isinstance(whole, (ast.ListComp, ast.GeneratorExp, ast.SetComp, ast.DictComp)) else None


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


def _before(ctx: Context, site: Site, statement: ast.stmt, names: list[str], title: str) -> Proposal | None:
    device = ctx.device(Site(site.source, statement, site.frame), avoid=names)
    if device is None:
        return None
    draft = ctx.draft(site.source)
    draft.before(statement, move_all(names, [f"{name}{to(device)}" for name in names]))
    return Proposal(title, [draft])


def next_strays(ctx: Context, site: Site) -> list[ast.expr]:
    """Uses, from the failing statement on, of the stray and of other tensors that would be the next error."""
    found: list[ast.expr] = []
    gone: set[str] = set()
    own = site.source.segment(site.node)
    for statement in rest(site):
        for node in widest(statement):
            if root(node) in gone:
                continue
            if not ctx.is_stray(Site(site.source, node, site.frame)):
                continue
            met = is_operand(ctx, site, node) or site.source.segment(node) == own or _bound_to_stray(ctx, site, node)
            if met and not _only_shape(site, node):
                found.append(node)
        gone |= bound([statement])
    return found


def _bound_to_stray(ctx: Context, site: Site, node: ast.AST) -> bool:
    """``self.sin`` of ``c, s = self.cos[:n], self.sin[:n]``: does a name that is stray by now stand for it?"""
    source = site.source
    statement = source.statement(node)
    if not isinstance(statement, ast.Assign) or statement is not source.statement(site.node):
        return False
    for target in statement.targets:
        if isinstance(target, ast.Tuple) and isinstance(statement.value, ast.Tuple):
            for name, part in zip(target.elts, statement.value.elts, strict=False):
                if any(n is node for n in ast.walk(part)):
                    return ctx.is_stray(Site(source, name, site.frame))
    return False


def _only_shape(site: Site, node: ast.AST) -> bool:
    parent = site.source.parent(node)
    return isinstance(parent, ast.Attribute) and parent.attr in ("shape", "dtype", "device", *HOST_METHODS)


def widest(statement: ast.AST) -> Iterator[ast.expr]:
    """The names, attributes and items that a statement reads, ``a.b[0]`` as one."""
    for child in ast.iter_child_nodes(statement):
        if isinstance(statement, ast.Call) and child is statement.func and isinstance(child, ast.Attribute):
            yield from widest(child)  # the "x" of "x.sum()"
            continue
        if isinstance(child, (ast.Name, ast.Attribute, ast.Subscript)) and _is_chain(child):
            if isinstance(child.ctx, ast.Load):
                yield _viewed(child)
            yield from (
                n.slice for n in ast.walk(child) if isinstance(n, ast.Subscript) and isinstance(n.slice, ast.Name)
            )
            continue
        yield from widest(child)


def _viewed(node: ast.expr) -> ast.expr:
    """``w`` of ``w.T``"""
    while isinstance(node, ast.Attribute) and node.attr in VIEWS:
        node = node.value
    return node


def _is_chain(node: ast.AST) -> bool:
    while isinstance(node, (ast.Attribute, ast.Subscript)):
        if isinstance(node, ast.Subscript) and not isinstance(node.slice, (ast.Constant, ast.Name)):
            return False
        node = node.value
    return isinstance(node, ast.Name)


def rest(site: Site) -> list[ast.stmt]:
    """The failing statement and those behind it in its block."""
    statement = site.source.statement(site.node)
    parent = site.source.parent(statement) if statement is not None else None
    for _, block in ast.iter_fields(parent) if parent is not None else ():
        if isinstance(block, list) and statement in block:
            return list(block[block.index(statement) :])
    return []


def _all_items(ctx: Context, place: Site, whole: ast.Attribute | ast.Subscript, holder: Any) -> Proposal | None:
    """Of a dict or list of host tensors all are moved, where it is bound in the same code or above its use."""
    kept = isinstance(whole.value, ast.Attribute) and type(holder) is list
    name = ast.unparse(whole.value) if kept or isinstance(whole.value, ast.Name) else None
    parts = list(holder.values()) if type(holder) is dict else list(holder) if type(holder) in (list, tuple) else []
    fewest = 2 if type(holder) is dict else 1  # nobody sets one item of a list by its number
    if name is None or sum(1 for part in parts if ctx.strays_like(part)) < fewest:
        return None
    statement = place.node
    assert isinstance(statement, ast.stmt)
    step = ctx.chain[0] if ctx.chain else None
    made = step.site.source.statement(step.site.node) if step is not None and step.how == "assignment" else None
    same = step is not None and step.site.source is place.source and step.site.frame is place.frame
    after = made if same and isinstance(made, ast.Assign) and name in bound([made]) else None
    if after is None and not ctx.work.available(place, root(whole) or ""):
        return None
    device = ctx.device(Site(place.source, after or statement, place.frame), avoid=[name])
    code = None if device is None else flat_move(holder, name, device)
    if code is None:
        return None
    draft = ctx.draft(place.source)
    draft.after(after, code) if after is not None else draft.before(statement, code)
    return Proposal(say("move all of {name} at once", name=name), [draft])


def _all_attributes(ctx: Context, place: Site, whole: ast.Attribute | ast.Subscript, holder: Any) -> Proposal | None:
    """Of an object's host tensors all are moved, for the next one would be met next; not what the host needs."""
    statement = place.node
    names = {n.id for n in ast.walk(whole) if isinstance(n, ast.Name)}
    if isinstance(whole, ast.Subscript) or is_frozen(holder) or not all(ctx.work.available(place, n) for n in names):
        return None
    name = ast.unparse(whole.value)
    parts = [(path, code) for path, code in tensor_parts(ctx, holder, name) if not attribute_wanted_on_host(ctx, path)]
    device = ctx.device(place, avoid=names)
    if len(parts) < 2 or device is None or not isinstance(statement, ast.stmt):
        return None
    draft = ctx.draft(place.source)
    if not _moves_itself(holder):
        draft.before(statement, move_parts(parts, device))
    elif isinstance(whole.value, ast.Name):
        draft.before(statement, f"{name} = {name}.to({device})")
    return Proposal(say("move what {name} keeps before it is used", name=name), [draft])


def _moves_itself(holder: Any) -> bool:
    """Has its class a method ``to``, and is nothing of it moved yet?"""
    found = attribute(holder, "to")
    return isinstance(found, MethodType) and len(placement.devices_of(holder)) == 1


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
    if not isinstance(whole, (ast.Attribute, ast.Subscript)) or holder is MISSING:
        return None
    if type(holder) is not tuple and is_of(holder, tuple):
        return None  # a named tuple keeps its class
    names = {n.id for n in ast.walk(whole) if isinstance(n, ast.Name)}
    place = Site(site.source, statement, site.frame)
    for together in (_all_items(ctx, place, whole, holder), _all_attributes(ctx, place, whole, holder)):
        if together is not None:
            return together
    if type(holder) is tuple or not all(ctx.work.available(place, name) for name in names):
        return None
    device = ctx.device(place, avoid=names)
    if device is None:
        return None
    draft = ctx.draft(site.source)
    draft.before(statement, f"{stray.expression} = {stray.expression}{to(device)}")
    return Proposal(say("move {name} before it is used", name=stray.expression), [draft])
