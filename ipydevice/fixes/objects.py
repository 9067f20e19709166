"""Objects that are no modules and keep tensors: moved where they are built, all that they keep at once."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from types import ModuleType
from typing import Any

from ipydevice import placement
from ipydevice.diagnose.evaluate import MISSING, is_of
from ipydevice.diagnose.finding import Site, Step
from ipydevice.fixes import bindings, classes, earlier
from ipydevice.fixes.context import Context, Proposal
from ipydevice.fixes.edits import Draft
from ipydevice.fixes.factories import fresh, make_on_device
from ipydevice.fixes.modules import workspace_device
from ipydevice.fixes.names import bound, root
from ipydevice.fixes.phrases import spoken, to
from ipydevice.language import say
from ipydevice.placement.kinds import attributes


def move_object(ctx: Context, owner: Any) -> Proposal | None:
    """Below the line that builds the object: ``sc.mean, sc.std = sc.mean.to(device), sc.std.to(device)``."""
    found = _named(ctx, owner)
    if found is None or is_frozen(owner):
        return None
    name, site, statement = found
    met = earlier.last_met_inside(ctx, owner, site, statement)
    title = say("move what {name} keeps, where it is built", name=name)
    if met is not None and isinstance(met.node, ast.stmt):  # it met host tensors until then
        site, statement = met, met.node
        title = say("move what {name} keeps, before it is used on the accelerator", name=name)
    parts = list(tensor_parts(ctx, owner, name))
    device = ctx.device(Site(site.source, statement, site.frame), avoid=[root(ast.parse(name, mode="eval").body) or ""])
    if not parts or device is None:
        return None
    code = move_parts(parts, device)
    draft = ctx.draft(site.source)
    draft.after(statement, code)
    here = workspace_device(ctx)
    live = move_parts(parts, here) if here is not None and name.split(".")[0] in ctx.finding.namespace else None
    return Proposal(title, [draft], live=live)


def is_frozen(owner: Any) -> bool:
    parameters = getattr(type(owner), "__dataclass_params__", None)
    return bool(getattr(parameters, "frozen", False)) or isinstance(owner, tuple)


def _named(ctx: Context, owner: Any) -> tuple[str, Site, ast.stmt] | None:
    """The object's name, and the statement behind which it holds its tensors."""
    for name, live in list(ctx.finding.namespace.items()):
        if live is not owner or name.startswith("_"):
            continue
        last: tuple[str, Site, ast.stmt] | None = None
        fillers = _fillers(ctx, owner)
        for cell in ctx.work.order:
            source = classes.cell_source(ctx, cell)
            for statement in source.tree.body:
                if cell is ctx.work.failed and 0 < ctx.failed_line <= (statement.end_lineno or 0):
                    break
                if name in bound([statement]) or (last is not None and _fills(statement, name, fillers)):
                    last = (name, Site(source, statement), statement)
        if last is not None:
            return last
    for step in ctx.finding.owner_chain:
        made = step.site.source.statement(step.site.node)
        if isinstance(made, ast.Assign) and step.how == "assignment":
            target = step.site.source.segment(made.targets[0])
            if ctx.value(Site(step.site.source, made.targets[0], step.site.frame)) is owner:
                return target, step.site, made
    return None


def _fillers(ctx: Context, owner: Any) -> set[str]:
    """Methods of the owner's class, other than __init__, that set a tensor attribute which is wrong now."""
    found: set[str] = set()
    for attribute, live in list(attributes(owner).items()):
        if ctx.strays_like(live):
            found |= {s.method.name for s in classes.settings(ctx, owner, attribute)}
    return found - {"__init__"}


def _fills(statement: ast.stmt, name: str, fillers: set[str]) -> bool:
    for node in ast.walk(statement):
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr in fillers
            and isinstance(node.func.value, ast.Name)
            and node.func.value.id == name
        ):
            return True
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and root(node) == name:
            return True
    return False


def tensor_parts(ctx: Context, owner: Any, name: str) -> Iterator[tuple[str, str]]:
    """(what to assign, the moved value with ``{}`` for the device) of all that is on the wrong device."""
    held = attributes(owner).items() if not isinstance(owner, dict) else ()
    for attribute, live in list(held):
        path = f"{name}.{attribute}"
        if not attribute.isidentifier():
            continue
        if ctx.strays_like(live):
            yield path, f"{path}.to({{}})"
        else:
            moved = _container_moved(ctx, live, path, 0)
            if moved is not None:
                yield path, moved


_DEEPEST = 3


def _container_moved(ctx: Context, live: Any, written: str, depth: int) -> str | None:
    """``[[t.to({}) for t in ts] for ts in x]``: a list, tuple or dict whose tensors are all stray, moved."""
    if type(live) not in (list, tuple, dict) or not live or depth >= _DEEPEST:
        return None
    parts = list(live.values()) if type(live) is dict else list(live)
    if all(ctx.strays_like(part) for part in parts):
        item, moved = "t", "t.to({})"
    else:
        inner = [_container_moved(ctx, part, "ts" + "s" * depth, depth + 1) for part in parts]
        if None in inner or len(set(inner)) != 1 or inner[0] is None:
            return None
        item, moved = "ts" + "s" * depth, inner[0]
    if type(live) is dict:
        return f"{{{{k: {moved} for k, {item} in {written}.items()}}}}"
    opening, closing = ("[", "]") if type(live) is list else ("tuple(", ")")
    return f"{opening}{moved} for {item} in {written}{closing}"


def move_parts(parts: list[tuple[str, str]], device: str) -> str:
    return f"{', '.join(p for p, _ in parts)} = {', '.join(code.format(device) for _, code in parts)}"


# -- built on the device ------------------------------------------------------------------------


def built_on_device(ctx: Context) -> Proposal | None:
    """``Normal(torch.zeros(3), scale)`` becomes ``Normal(torch.zeros(3, device=d), scale.to(d))``: what it is given."""
    for step in _building(ctx):
        statement = step.site.source.statement(step.site.node)
        if not isinstance(statement, (ast.Assign, ast.AnnAssign)) or statement.value is None:
            continue
        calls = [call for call in _built_in(statement.value) if not _is_asked_of_object(ctx, step.site, call)]
        target = statement.targets[0] if isinstance(statement, ast.Assign) else statement.target
        live = ctx.value(Site(step.site.source, target, step.site.frame))
        if placement.is_tensor(live) or placement.is_module(live) or not _holds_stray(ctx, live) or _fills_itself(ctx):
            continue
        if earlier.last_met_inside(ctx, live, step.site, statement) is not None:
            continue  # it met host tensors since then
        draft = ctx.draft(step.site.source)
        avoid = sorted(bound([statement]))
        said = [_given_on_device(ctx, draft, step.site, call, avoid) for call in calls]
        device = next((code for code in said if code is not None), None)
        if device is not None:
            name = step.site.source.segment(target)
            return Proposal(say("build {name} from tensors on {device}", name=name, device=spoken(device)), [draft])
    return None


def _is_asked_of_object(ctx: Context, site: Site, call: ast.Call) -> bool:
    """``data.minibatch(idx)``: what the object holds is given out, and not what the call is given."""
    if not isinstance(call.func, ast.Attribute):
        return False
    owner = ctx.value(Site(site.source, call.func.value, site.frame), call.func.value)
    return owner is not MISSING and not is_of(owner, type, ModuleType)


def _built_in(value: ast.expr) -> Iterator[ast.Call]:
    """The calls that build the object, or each object of a list."""
    match value:
        case ast.Call():
            yield value
        case ast.ListComp(elt=part) | ast.DictComp(value=part):
            yield from _built_in(part)
        case ast.List(elts=parts) | ast.Tuple(elts=parts) | ast.Dict(values=parts):
            for part in parts:
                yield from _built_in(part)


def _holds_stray(ctx: Context, live: Any) -> bool:
    stray = ctx.stray
    if stray is None or live is MISSING:
        return False
    wanted = (stray.owner, stray.value)
    if any(live is one for one in wanted):
        return True
    # What is given is kept as a view, such as a distribution's: another tensor over the same storage.
    held = [found.value for found in placement.walk(live)]
    return any(one is part or placement.same(one, part) for part in held for one in wanted if one is not None)


def _building(ctx: Context) -> Iterator[Step]:
    """The statements that may have built the object: on the stray's way, and of its name in the workspace."""
    yield from (step for step in (*ctx.chain, *ctx.finding.owner_chain) if step.how == "assignment")
    stray = ctx.stray
    name = _first_name(stray.path) if stray is not None and stray.path is not None else None
    step = bindings.last_binding(ctx, name) if name is not None else None
    if step is not None:
        yield step


def _first_name(path: str) -> str | None:
    try:
        return root(ast.parse(path, mode="eval").body)
    except SyntaxError:
        return None


def _fills_itself(ctx: Context) -> bool:
    """Does the class of the notebook that holds the stray make it of its own accord?"""
    stray = ctx.stray
    if stray is None or stray.owner is None or not stray.attribute.isidentifier():
        return False
    return any(fresh(s.value, ctx.scope(s.site)) for s in classes.settings(ctx, stray.owner, stray.attribute))


def _given_on_device(ctx: Context, draft: Draft, site: Site, call: ast.Call, avoid: list[str]) -> str | None:
    """Make or move the tensors among the arguments, also of calls and lists among them; the device, None for none."""
    device: str | None = None
    todo: list[ast.expr] = [*call.args, *(k.value for k in call.keywords)]
    while todo:
        part = todo.pop()
        here = Site(site.source, part, site.frame)
        made = make_on_device(ctx, draft, here, part, avoid=tuple(avoid))
        if made is not None:
            device = made
        elif isinstance(part, (ast.Name, ast.Attribute, ast.Subscript)) and ctx.strays_like(ctx.value(here)):
            said = ctx.device(here, avoid=[*avoid, root(part) or ""])
            if said is not None:
                draft.suffix(part, to(said))
                device = said
        elif isinstance(part, ast.Call):
            todo += [*part.args, *(k.value for k in part.keywords)]
        elif isinstance(part, (ast.List, ast.Tuple)):
            todo += part.elts
        elif isinstance(part, ast.Dict):
            todo += part.values
    return device
