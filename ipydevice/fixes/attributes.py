"""Tensors that objects keep: attributes no ``.to()`` reaches, states, caches."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import Any

from ipydevice import placement
from ipydevice.diagnose.evaluate import MISSING
from ipydevice.diagnose.finding import Site
from ipydevice.fixes import bindings, changed, classes, containers, phrases, uses
from ipydevice.fixes.context import Context, Proposal
from ipydevice.fixes.edits import Draft
from ipydevice.fixes.modules import moved_in_pieces, workspace_device
from ipydevice.fixes.names import bound, last_name, receiver, root
from ipydevice.fixes.objects import built_on_device, move_object
from ipydevice.language import joined, say
from ipydevice.placement.kinds import attributes
from ipydevice.placement.tensors import read

# -- buffers ------------------------------------------------------------------------------------


def plain_attribute(ctx: Context) -> Iterator[Proposal]:
    """A buffer where a module keeps a tensor; where another object keeps it, a move of all it keeps."""
    for owner, attribute in owners(ctx):
        if placement.is_module(owner):
            yield from containers.of_tensors(ctx, owner, attribute)
            buffer = as_buffer(ctx, owner, attribute)
            if buffer is not None:
                yield buffer
        else:
            ways = [built_on_device(ctx), move_object(ctx, owner)]
            # A class of the notebook may compute on what it is given: what it keeps is less than that.
            for whole in ways if classes.class_node(ctx, owner) is None else ways[::-1]:
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
    repair, drafts = None, [draft]
    pieces = moved_in_pieces(ctx, owner)
    if pieces is not None and path is not None:
        site, last = pieces
        there = ctx.device(Site(site.source, last), avoid=[path])
        if there is not None:
            whole = draft if site.source.text == source.text else ctx.draft(site.source)
            whole.after(last, f"{path}.to({there})")
            drafts = [draft] if whole is draft else [draft, whole]
    if path is not None and device is not None:
        repair = "\n".join(
            f'{path}.register_buffer("{name}", {path}.__dict__.pop("{name}").to({device}){tails[name]})'
            for name in chosen
        )
    names = [f"{receiver(first.method)}.{name}" for name in chosen]
    kept = [name for name, tail in tails.items() if not tail]
    return Proposal(
        say("make {name} a buffer, which moves with the module", name=names[0])
        if len(names) == 1
        else say("make {names} buffers, which move with the module", names=say(" and ").join(names)),
        drafts,
        live=repair,
        note=say("the checkpoint gets {names}; persistent=False keeps it out", names=joined(kept))
        if kept
        else say("persistent=False: it is computed anew, so checkpoints keep their keys"),
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
    empty = isinstance(first.value, ast.Constant) and first.value.value is None
    if empty and any(_runs_after_move(ctx, owner, s.method.name) for s in settings[1:]):
        return None  # what is assigned to a buffer later is where it was made
    if len(_targets(first)) > 1 and not isinstance(first.value, ast.Constant):
        return None  # two names for one tensor
    if read(live, "grad_fn") is not None:
        return None  # computed from parameters: a buffer would keep the old graph
    return first


def _runs_after_move(ctx: Context, owner: Any, method: str) -> bool:
    """Do the cells call this method of the module below the statement that moves the module last?"""
    names = {*bindings.names_of(ctx, owner), *bindings.names_around(ctx, owner)}
    moved = called = -1
    statements = (s for cell in ctx.work.order for s in ctx.work.effects(cell).tree.body)
    for number, statement in enumerate(statements):
        for call in ast.walk(statement):
            if not (isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute)):
                continue
            if call.func.attr in ("to", "cuda") and (root(call.func) in names or names & bound([statement])):
                moved = number
            if call.func.attr == method and root(call.func) in names:
                called = number
    return called > moved >= 0


def _register(
    draft: Draft, setting: classes.Setting, chosen: dict[str, classes.Setting], tails: dict[str, str]
) -> None:
    """Rewrite one assignment, of one attribute or of a tuple of them."""
    source = setting.site.source
    targets, value = _targets(setting), setting.statement.value
    assert value is not None
    pairs = [(target, value) for target in targets]  # "self.cos = self.sin = None"
    if isinstance(targets[0], ast.Tuple) and isinstance(value, ast.Tuple):
        pairs = list(zip(targets[0].elts, value.elts, strict=True))
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


def _targets(setting: classes.Setting) -> list[ast.expr]:
    statement = setting.statement
    return statement.targets if isinstance(statement, ast.Assign) else [statement.target]


def _is_argument(setting: classes.Setting, value: ast.expr) -> bool:
    """Is the value handed in, so that only a checkpoint could bring it back?"""
    names = {a.arg for a in setting.method.args.args[1:]} | {a.arg for a in setting.method.args.kwonlyargs}
    return root(value) in names and not isinstance(value, ast.Call)


# -- at the use -----------------------------------------------------------------------------------


def at_use(ctx: Context) -> Iterator[Proposal]:
    """``.to(x.device)`` where the tensor is used; right on every device, a copy on each call.

    What the code there writes into is moved as its holder keeps it.
    """
    kept = changed.kept_moved_first(ctx)
    if kept is not None:
        yield kept
    used = uses.where_used(ctx)
    if used is not None:
        used.note = used.note or say("copies it on every call")
        yield used
