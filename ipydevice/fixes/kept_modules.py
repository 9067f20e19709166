"""Modules that a config, a registry or another plain object keeps, where no ``.to()`` of a model reaches them."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

from ipydevice import placement
from ipydevice.diagnose.evaluate import MISSING, Scope, value
from ipydevice.diagnose.finding import Site
from ipydevice.diagnose.source import Source
from ipydevice.fixes import bindings, classes, earlier
from ipydevice.fixes.context import Context, Proposal
from ipydevice.fixes.edits import Draft
from ipydevice.fixes.modules import workspace_device
from ipydevice.fixes.movers import is_move
from ipydevice.fixes.names import root
from ipydevice.fixes.phrases import listed
from ipydevice.language import say
from ipydevice.placement.kinds import attributes


def kept_in_an_object(ctx: Context) -> Iterator[Proposal]:
    """``Config(teacher=build().to(device))``, else ``cfg.teacher.to(device)`` below what fills ``cfg``."""
    for path, holder in _holders(ctx):
        name = root(path)
        step = None if name is None else bindings.last_binding(ctx, name)
        if name is None or step is None or placement.is_module(holder):
            continue
        given = _where_given(ctx, path, step.site, step.value)
        if given is not None:
            yield given
        yield from _where_put(ctx, path, holder, name)
        yield from _below(ctx, path, holder, name)
        return


def _holders(ctx: Context) -> Iterator[tuple[ast.Attribute | ast.Subscript, Any]]:
    """(path to the stray module in the workspace, the object or dict of the workspace that has it)."""
    stray = ctx.stray
    scope = Scope.of_namespace(ctx.finding.namespace)
    for text in (stray.path, classes.owner_path(ctx)) if stray is not None else ():
        try:
            node: ast.AST = ast.parse(text or "", mode="eval").body
        except SyntaxError:
            continue
        while isinstance(node, (ast.Attribute, ast.Subscript)):
            holder = value(node.value, scope)
            if placement.is_module(value(node, scope)) and holder is not MISSING and not placement.is_module(holder):
                yield node, holder
                break
            node = node.value


def _where_given(
    ctx: Context, path: ast.Attribute | ast.Subscript, site: Site, made: ast.expr | None
) -> Proposal | None:
    """The module is made in the call, or the dict, that makes its holder."""
    part: ast.expr | None = None
    match path, made:
        case ast.Attribute(value=ast.Name(), attr=name), ast.Call():
            part = next((k.value for k in made.keywords if k.arg == name), None)
        case ast.Subscript(value=ast.Name(), slice=ast.Constant(value=key)), ast.Dict():
            pairs = zip(made.keys, made.values, strict=True)
            part = next((v for k, v in pairs if isinstance(k, ast.Constant) and k.value == key), None)
        case ast.Subscript(value=ast.Name(), slice=ast.Constant(value=key)), ast.Call(func=ast.Name(id="dict")):
            part = next((k.value for k in made.keywords if k.arg == key), None)
    device = None if part is None else ctx.device(Site(site.source, part, site.frame))
    if not isinstance(part, ast.Call) or device is None:
        return None
    draft = ctx.draft(site.source)
    draft.suffix(part, f".to({device})")
    here = workspace_device(ctx)
    live = None if here is None else f"{ast.unparse(path)}.to({here})"
    return Proposal(say("move {name} where it is made", name=site.source.segment(part)), [draft], live=live)


def _below(ctx: Context, path: ast.Attribute | ast.Subscript, holder: Any, name: str) -> Iterator[Proposal]:
    """Below the last statement before the failure that may have put the module there."""
    place = _filled(ctx, name)
    if place is None or not isinstance(place.node, ast.stmt):
        return
    device, here = ctx.device(place, avoid=[name]), workspace_device(ctx)
    if device is None:
        return
    said, names = _moves(ctx, path, holder)
    draft = ctx.draft(place.source)
    draft.after(place.node, said.format(device))
    yield Proposal(say("move {names}", names=names), [draft], live=None if here is None else said.format(here))


def _moves(ctx: Context, path: ast.Attribute | ast.Subscript, holder: Any) -> tuple[str, str]:
    """(code with ``{}`` for the device, what it moves): all modules of the holder that are where the stray is."""
    base = ast.unparse(path.value)
    parts = dict.items(holder) if type(holder) is dict else attributes(holder).items()
    wrong = [key for key, live in parts if _is_left(ctx, live)]
    each = next(name for name in ("m", "module", "module_") if name not in ctx.finding.namespace)
    several = f"for {each} in {{}}:\n    {each}.to({{{{}}}})"
    if type(holder) in (list, tuple) and len(holder) > 1 and all(_may_be_moved(ctx, live) for live in holder):
        return several.format(base), say("the modules of {base}", base=base)
    if type(holder) is dict and len(wrong) > 1 and all(_may_be_moved(ctx, live) for live in dict.values(holder)):
        return several.format(f"{base}.values()"), say("the modules of {base}", base=base)
    names = [f"{base}[{key!r}]" if type(holder) is dict else f"{base}.{key}" for key in wrong]
    names = names or [ast.unparse(path)]
    return "\n".join(f"{_braced(one)}.to({{}})" for one in names), listed(names)


def _braced(text: str) -> str:
    return text.replace("{", "{{").replace("}", "}}")


def _is_left(ctx: Context, live: Any) -> bool:
    stray = ctx.stray
    return placement.is_module(live) and stray is not None and placement.devices_of(live) == (stray.device,)


def _may_be_moved(ctx: Context, live: Any) -> bool:
    """Is it a module that is left, or one that is where all should be?"""
    return _is_left(ctx, live) or (placement.is_module(live) and placement.devices_of(live) == (ctx.target,))


def _where_put(ctx: Context, path: ast.Attribute | ast.Subscript, holder: Any, name: str) -> Iterator[Proposal]:
    """``models.append(build(k).to(device))``: the calls whose modules a cell puts into the list or dict one by one."""
    drafts: dict[Source, Draft] = {}
    texts: list[str] = []
    for cell in ctx.work.order[:-1]:
        source = classes.cell_source(ctx, cell)
        for node in ctx.work.effects(cell).nodes:
            part = _put(node, name)
            device = None if part is None else ctx.device(Site(source, part), avoid=[name])
            if part is None or device is None or is_move(part):
                continue
            drafts.setdefault(source, ctx.draft(source)).suffix(part, f".to({device})")
            texts.append(source.segment(part))
    here = workspace_device(ctx)
    live = None if here is None else _moves(ctx, path, holder)[0].format(here)
    if texts and ast.unparse(path.value) == name:
        title = say("move {names} where it is put into {holder}", names=listed(texts), holder=name)
        yield Proposal(title, list(drafts.values()), live=live)


def _put(node: ast.AST, name: str) -> ast.Call | None:
    """The call in ``name.append(call())`` and ``name[k] = call()``."""
    match node:
        case ast.Call(func=ast.Attribute(value=ast.Name(id=held), attr="append" | "add" | "insert"), args=[*_, part]):
            return part if held == name and isinstance(part, ast.Call) else None
        case ast.Assign(targets=[ast.Subscript(value=ast.Name(id=held))], value=ast.Call() as part):
            return part if held == name else None
    return None


def _filled(ctx: Context, name: str) -> Site | None:
    """The last statement of a cell, before the failure, that binds the name or may change what it holds."""
    last: Site | None = None
    step = bindings.last_binding(ctx, name)
    if step is None or not isinstance(step.site.node, ast.stmt):
        return None
    last = step.site
    for source, statement in earlier.between(ctx, step.site.source, step.site.node):
        if earlier.may_change(ctx, statement, name):
            last = Site(source, statement)
    met = earlier.last_met_inside(ctx, ctx.finding.namespace.get(name), last, last.node)  # type: ignore[arg-type]
    return met or last
