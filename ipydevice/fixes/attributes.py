"""Tensors that objects keep: attributes no ``.to()`` reaches, states, caches."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import Any

from ipydevice import placement
from ipydevice.diagnose.evaluate import MISSING
from ipydevice.diagnose.finding import Site
from ipydevice.fixes import classes, phrases, uses
from ipydevice.fixes.context import Context, Proposal
from ipydevice.fixes.edits import Draft
from ipydevice.fixes.modules import workspace_device
from ipydevice.fixes.names import bound, last_name, receiver, root
from ipydevice.placement.kinds import attributes
from ipydevice.placement.tensors import read

# -- buffers ------------------------------------------------------------------------------------


def plain_attribute(ctx: Context) -> Iterator[Proposal]:
    """A buffer where a module keeps a tensor; where another object keeps it, a move of all it keeps."""
    for owner, attribute in owners(ctx):
        if placement.is_module(owner):
            buffer = as_buffer(ctx, owner, attribute)
            if buffer is not None:
                yield buffer
        else:
            whole = move_object(ctx, owner)
            if whole is not None:
                yield whole
    yield from at_use(ctx)


def owners(ctx: Context) -> Iterator[tuple[Any, str]]:
    """(object, attribute) that hold the stray, the holder named by the finding first."""
    stray = ctx.stray
    if stray is None:
        return
    seen: set[int] = set()
    if stray.owner is not None and stray.attribute:
        first = stray.attribute.replace("[", ".").split(".")[0]
        seen.add(id(stray.owner))
        yield stray.owner, first
    behind = phrases.stray_owner(ctx)
    if behind is not None and id(behind) not in seen and not placement.is_tensor(behind):
        last = re.findall(r"\.(\w+)(?:\[[^.]*\])?$", stray.path or "")
        if last:
            seen.add(id(behind))
            yield behind, last[0]
    node = stray.site.node
    while isinstance(node, (ast.Subscript, ast.Call)):
        node = node.value if isinstance(node, ast.Subscript) else node.func
    if isinstance(node, ast.Attribute):
        owner = ctx.value(Site(stray.site.source, node.value, stray.site.frame))
        if owner is not MISSING and id(owner) not in seen and not placement.is_tensor(owner):
            yield owner, node.attr


def as_buffer(ctx: Context, owner: Any, attribute: str) -> Proposal | None:
    """``self.pe = expr`` in ``__init__`` becomes ``self.register_buffer("pe", expr)``, and its like beside it."""
    first = _may_be_buffer(ctx, owner, attribute)
    if first is None:
        return None
    chosen = {attribute: first}
    for other, live in list(attributes(owner).items()):
        if other != attribute and ctx.strays_like(live):
            setting = _may_be_buffer(ctx, owner, other)
            if setting is not None and setting.site.source.text == first.site.source.text:
                chosen[other] = setting
    source = first.site.source
    draft = ctx.draft(source)
    tails: dict[str, str] = {}
    done: list[ast.stmt] = []
    for setting in chosen.values():
        if not any(setting.statement is statement for statement in done):
            done.append(setting.statement)
            _register(draft, setting, chosen, tails)
    path, device = classes.path_of(ctx, owner), workspace_device(ctx)
    repair = None
    if path is not None and device is not None:
        repair = "\n".join(
            f'{path}.register_buffer("{name}", {path}.__dict__.pop("{name}").to({device}){tails[name]})'
            for name in chosen
        )
    listed = " and ".join(f"self.{name}" for name in chosen)
    kept = [name for name, tail in tails.items() if not tail]
    return Proposal(
        f"make {listed} {'a buffer, which moves' if len(chosen) == 1 else 'buffers, which move'} with the module",
        [draft],
        live=repair,
        note=f"the checkpoint gets {', '.join(kept)}; persistent=False keeps it out"
        if kept
        else "persistent=False: it is computed anew, so checkpoints keep their keys",
    )


def _may_be_buffer(ctx: Context, owner: Any, attribute: str) -> classes.Setting | None:
    """The statement in ``__init__`` that sets the attribute, where it may become a buffer."""
    live = attributes(owner).get(attribute, MISSING)
    if not placement.is_tensor(live) or placement.is_parameter(live) or classes.has_class_attribute(owner, attribute):
        return None
    settings = classes.settings(ctx, owner, attribute)
    first = settings[0] if settings else None
    if first is None or first.method.name != "__init__" or not classes.after_super(first):
        return None
    if read(live, "grad_fn") is not None:
        return None  # computed from parameters: a buffer would keep the old graph
    return first


def _register(
    draft: Draft, setting: classes.Setting, chosen: dict[str, classes.Setting], tails: dict[str, str]
) -> None:
    """Rewrite one assignment, of one attribute or of a tuple of them."""
    source = setting.site.source
    target, value = _target(setting), setting.statement.value
    assert value is not None
    pairs = [(target, value)]
    if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
        pairs = list(zip(target.elts, value.elts, strict=True))
    lines = []
    for one, part in pairs:
        name = last_name(one)
        if name not in chosen or not isinstance(one, ast.Attribute):
            lines.append(f"{source.segment(one)} = {draft.segment(part)}")
            continue
        empty = isinstance(part, ast.Constant) and part.value is None
        computed = not empty and not _is_argument(setting, part) and not classes.is_random(setting.method, source)
        tails[name] = ", persistent=False" if computed or empty else ""
        key = classes.quote(source, name)
        lines.append(f"{source.segment(one.value)}.register_buffer({key}, {draft.segment(part)}{tails[name]})")
    for line in reversed(lines[1:]):
        draft.after(setting.statement, line)
    draft.replace_statement(setting.statement, lines[0])


def _target(setting: classes.Setting) -> ast.expr:
    statement = setting.statement
    return statement.targets[0] if isinstance(statement, ast.Assign) else statement.target


def _is_argument(setting: classes.Setting, value: ast.expr) -> bool:
    """Is the value handed in, so that only a checkpoint could bring it back?"""
    names = {a.arg for a in setting.method.args.args[1:]} | {a.arg for a in setting.method.args.kwonlyargs}
    return root(value) in names and not isinstance(value, ast.Call)


# -- plain objects ------------------------------------------------------------------------------


def move_object(ctx: Context, owner: Any) -> Proposal | None:
    """Below the line that builds the object: ``sc.mean, sc.std = sc.mean.to(device), sc.std.to(device)``."""
    found = _named(ctx, owner)
    if found is None or _is_frozen(owner):
        return None
    name, site, statement = found
    parts = list(_tensor_parts(ctx, owner, name))
    device = ctx.device(Site(site.source, statement, site.frame), avoid=[root(ast.parse(name, mode="eval").body) or ""])
    if not parts or device is None:
        return None
    code = _move_parts(parts, device)
    draft = ctx.draft(site.source)
    draft.after(statement, code)
    here = workspace_device(ctx)
    live = _move_parts(parts, here) if here is not None and name.split(".")[0] in ctx.finding.namespace else None
    return Proposal(f"move what {name} keeps, where it is built", [draft], live=live)


def _is_frozen(owner: Any) -> bool:
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
                if cell is ctx.work.failed and _holds(statement, ctx.failed_statement):
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


def _holds(statement: ast.stmt, wanted: ast.stmt | None) -> bool:
    return wanted is not None and any(node is wanted for node in ast.walk(statement))


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


def _tensor_parts(ctx: Context, owner: Any, name: str) -> Iterator[tuple[str, str]]:
    """(what to assign, the moved value with ``{}`` for the device) of all that is on the wrong device."""
    held = attributes(owner).items() if not isinstance(owner, dict) else ()
    for attribute, live in list(held):
        path = f"{name}.{attribute}"
        if not attribute.isidentifier():
            continue
        if ctx.strays_like(live):
            yield path, f"{path}.to({{}})"
        elif type(live) in (list, tuple) and live and all(ctx.strays_like(v) for v in live):
            opening, closing = ("[", "]") if type(live) is list else ("tuple(", ")")
            yield path, f"{opening}t.to({{}}) for t in {path}{closing}"
        elif type(live) is dict and live and all(ctx.strays_like(v) for v in live.values()):
            yield path, f"{{{{k: t.to({{}}) for k, t in {path}.items()}}}}"


def _move_parts(parts: list[tuple[str, str]], device: str) -> str:
    return f"{', '.join(p for p, _ in parts)} = {', '.join(code.format(device) for _, code in parts)}"


# -- at the use -----------------------------------------------------------------------------------


def at_use(ctx: Context) -> Iterator[Proposal]:
    """``.to(x.device)`` where the tensor is used; right on every device, a copy on each call."""
    used = uses.where_used(ctx)
    if used is not None:
        used.note = used.note or "copies it on every call"
        yield used


# -- state between calls ------------------------------------------------------------------------


# -- caches ---------------------------------------------------------------------------------------


# -- optimizers -----------------------------------------------------------------------------------


# -- values derived from parameters ------------------------------------------------------------------


def derived_in_init(ctx: Context) -> Iterator[Proposal]:
    """Compute in forward what ``__init__`` computed from parameters."""
    for owner, attribute in owners(ctx):
        if not placement.is_module(owner):
            continue
        again = _computed_at_use(ctx, owner, attribute)
        if again is not None:
            yield again
        buffer = as_buffer(ctx, owner, attribute)
        if buffer is not None:
            yield buffer
    yield from at_use(ctx)


def _computed_at_use(ctx: Context, owner: Any, attribute: str) -> Proposal | None:
    settings = classes.settings(ctx, owner, attribute)
    stray = ctx.stray
    if len(settings) != 1 or stray is None:
        return None
    setting = settings[0]
    source, own = setting.site.source, receiver(setting.method)
    names = {n.id for n in ast.walk(setting.value) if isinstance(n, ast.Name)}
    local = bound(setting.method.body) | {a.arg for a in setting.method.args.args}
    held = {member.path.removeprefix(".") for member in placement.members(owner)} | set(attributes(owner))
    needed = {
        n.attr
        for n in ast.walk(setting.value)
        if isinstance(n, ast.Attribute) and root(n) == own and isinstance(n.value, ast.Name)
    }
    if (names - {own}) & local or not needed or not setting.whole:
        return None
    live = attributes(owner).get(attribute)
    learned = placement.is_tensor(live) and read(live, "grad_fn") is not None
    detached = any(last_name(c.func) in ("detach", "clone") for c in ast.walk(setting.value) if isinstance(c, ast.Call))
    if not needed <= held or not (learned or detached or "data" in needed):
        return None
    node = source.class_of(setting.statement)
    if not learned or node is None:
        return None
    draft = ctx.draft(source)
    code = source.segment(setting.value)
    used = False
    for method in node.body:
        if method is setting.method or receiver(method) != own:
            continue
        for use in ast.walk(method):
            if (
                isinstance(use, ast.Attribute)
                and use.attr == attribute
                and isinstance(use.ctx, ast.Load)
                and root(use) == own
            ):
                draft.replace(
                    use, code if isinstance(setting.value, (ast.Call, ast.Attribute, ast.Name)) else f"({code})"
                )
                used = True
    if not used:
        return None
    draft.replace_statement(setting.statement, "pass") if len(setting.method.body) == 1 else _remove(draft, setting)
    return Proposal(
        f"compute self.{attribute} where it is used",
        [draft],
        note="so it follows the parameter when that is moved or trained",
    )


def _remove(draft: Any, setting: classes.Setting) -> None:
    draft.remove(setting.statement)
