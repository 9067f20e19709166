"""Values that ``__init__`` computed from parameters, and that stay behind when these move or learn."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

from ipydevice import placement
from ipydevice.fixes import classes
from ipydevice.fixes.attributes import as_buffer, at_use, owners
from ipydevice.fixes.context import Context, Proposal
from ipydevice.fixes.names import bound, last_name, receiver, root
from ipydevice.language import say
from ipydevice.placement.kinds import attributes
from ipydevice.placement.tensors import read


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
    draft.replace_statement(setting.statement, "pass") if len(setting.method.body) == 1 else draft.remove(
        setting.statement
    )
    return Proposal(
        say("compute self.{attribute} where it is used", attribute=attribute),
        [draft],
        note=say("so it follows the parameter when that is moved or trained"),
    )
