"""What is kept between calls: hidden states and caches."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from types import FrameType
from typing import Any

from ipydevice import placement
from ipydevice.diagnose.finding import Site
from ipydevice.diagnose.source import Source
from ipydevice.fixes import classes
from ipydevice.fixes.attributes import as_buffer, at_use, owners
from ipydevice.fixes.context import Context, Proposal
from ipydevice.fixes.factories import fresh, make_on_device
from ipydevice.fixes.modules import workspace_device
from ipydevice.fixes.names import last_name, receiver, root
from ipydevice.fixes.objects import move_object
from ipydevice.fixes.phrases import listed, spoken
from ipydevice.language import say
from ipydevice.placement.kinds import attributes


def kept_state(ctx: Context) -> Iterator[Proposal]:
    """A hidden state kept between calls: a buffer, or moved before it is used, None left alone."""
    for owner, attribute in owners(ctx):
        again = _made_again(ctx, owner, attribute)
        if again is not None:
            yield again
        elif placement.is_module(owner):
            buffer = as_buffer(ctx, owner, attribute)
            if buffer is not None:
                buffer.title = say(
                    "make the state {attribute} a buffer, which moves with the module", attribute=attribute
                )
                yield buffer
        guarded = _moved_if_there(ctx, owner, attribute)
        if guarded is not None:
            guarded.live = None if again is not None else guarded.live  # the method would make it anew
            yield guarded


def _made_again(ctx: Context, owner: Any, attribute: str) -> Proposal | None:
    """``self.h = torch.zeros(n, d)`` in a method: made on the device there, where it would replace any buffer."""
    names = [attribute, *(n for n, live in attributes(owner).items() if n != attribute and ctx.strays_like(live))]
    settings = [(name, one) for name in names for one in classes.settings(ctx, owner, name)]
    first = next((s for n, s in settings if n == attribute and _makes_anew(ctx, s)), None)
    if first is None:
        return None
    draft = ctx.draft(first.site.source)
    made: dict[str, str] = {}
    for name, setting in settings:
        if setting.site.source is first.site.source and setting.method is first.method and _makes_anew(ctx, setting):
            assert setting.value is not None
            site = Site(setting.site.source, setting.value, None)
            device = make_on_device(ctx, draft, site, setting.value, avoid=tuple(names))
            if device is None:
                return None
            made[f"{receiver(setting.method)}.{name}"] = device
    return Proposal(
        say(
            "make {names} on {device} in {method}()",
            names=listed(list(made)),
            device=spoken(next(iter(made.values()))),
            method=first.method.name,
        ),
        [draft],
    )


def _makes_anew(ctx: Context, setting: classes.Setting) -> bool:
    value = setting.value
    return (
        setting.method.name != "__init__"
        and isinstance(value, ast.expr)
        and bool(fresh(value, ctx.scope(setting.site)))
    )


def _moved_if_there(ctx: Context, owner: Any, attribute: str) -> Proposal | None:
    stray = ctx.stray
    assert stray is not None
    node: ast.AST = stray.site.node
    while isinstance(node, ast.Subscript):
        node = node.value
    site = Site(stray.site.source, node, stray.site.frame)
    statement = site.source.statement(node)
    if not isinstance(node, ast.Attribute) or statement is None or node.attr != attribute:
        return None
    name = site.source.segment(node)
    device = ctx.device(Site(site.source, statement, site.frame))
    held = attributes(owner).get(attribute)
    if device is None:
        return None
    moved_names = [attribute]
    several = not placement.is_tensor(held) and held is not None  # (h, c) of an LSTM
    moved = f"tuple(s.to({device}) for s in {name})" if several else f"{name}.to({device})"
    code = f"if {name} is not None:\n    {name} = {moved}"
    own = site.source.segment(node.value)
    beside = {
        n.attr for n in ast.walk(statement) if isinstance(n, ast.Attribute) and site.source.segment(n.value) == own
    }
    for other in sorted(beside - {attribute}):  # the cell state beside the hidden one
        if ctx.strays_like(attributes(owner).get(other)):
            code += f"\n    {own}.{other} = {own}.{other}.to({device})"
            moved_names.append(other)
    draft = ctx.draft(site.source)
    draft.before(statement, code)
    path, here = classes.owner_path(ctx), workspace_device(ctx)
    live = None
    if path is not None and here is not None and placement.is_tensor(held):
        live = "\n".join(f"{path}.{one} = {path}.{one}.to({here})" for one in moved_names)
    names = [f"{own}.{one}" for one in moved_names]
    return Proposal(
        say(
            "move {names} to the input's device before it is used"
            if len(names) == 1
            else "move {names} to the input's device before they are used",
            names=listed(names),
        ),
        [draft],
        live=live,
    )


def stale_cache(ctx: Context) -> Iterator[Proposal]:
    """Make the cache ask for the device; or move what comes out of it."""
    yield from rebuilt(ctx)
    out = _moved_out(ctx)
    if out is not None and out[1]:
        yield out[0]
    yield from at_use(ctx)
    if out is not None:  # its callers may be on several devices: where they use it is better
        yield out[0]
    for owner, _ in owners(ctx):
        if not placement.is_module(owner):
            whole = move_object(ctx, owner)
            if whole is not None:
                yield whole


def _moved_out(ctx: Context) -> tuple[Proposal, bool] | None:
    """(what the cache hands back is moved, does its function itself know the device of its caller)."""
    for step in ctx.chain:
        statement = _giving_out(step.site)
        if step.how != "return" or not isinstance(statement, ast.Return) or statement.value is None:
            continue
        function = step.site.source.function(statement)
        if any("cache" in ast.unparse(one) for one in getattr(function, "decorator_list", ())):
            continue  # its body does not run again for what is remembered
        site = Site(step.site.source, statement.value, step.site.frame)
        device = ctx.device(site)
        if device is None:
            return None
        draft = ctx.draft(step.site.source)
        for part in _handed_back(statement.value):
            draft.suffix(part, f".to({device})")
        names = {n.id for n in ast.walk(ast.parse(device)) if isinstance(n, ast.Name)}
        local = any(ctx.work.is_local(site, name) for name in names)
        return Proposal(say("move what comes out of the cache"), [draft]), local
    return None


def _giving_out(site: Site) -> ast.stmt | None:
    """Of the returns of a function that keeps what it makes, the one that gives out what was kept."""
    statement, function = site.source.statement(site.node), site.source.function(site.node)
    returns = [n for n in ast.walk(function) if isinstance(n, ast.Return)] if function is not None else []
    kept = [r for r in returns if isinstance(r.value, (ast.Subscript, ast.Attribute))]
    return statement if statement in kept or len(kept) != 1 else kept[0]


def _handed_back(value: ast.expr) -> list[ast.expr]:
    """The value of a return statement, or the members where it is a tuple or list of them."""
    if isinstance(value, (ast.Tuple, ast.List)):
        return [part for part in value.elts if not isinstance(part, (ast.Constant, ast.Starred))]
    return [value]


def rebuilt(ctx: Context) -> Iterator[Proposal]:
    """``if self.mask is None:`` becomes ``if self.mask is None or self.mask.device != x.device:``."""
    for owner, attribute in owners(ctx):
        for setting in classes.settings(ctx, owner, attribute):
            source, own = setting.site.source, receiver(setting.method)
            for asked in _questions(setting):
                if classes.is_random(setting.statement, source):
                    return
                name = f"{own}.{attribute}"
                held = attributes(owner).get(attribute)
                if type(held) in (tuple, list) and held and placement.is_tensor(held[0]):
                    name += "[0]"
                device = ctx.device(Site(source, asked.test, _frame_of(ctx, source, asked)), avoid=[attribute])
                if device is None or name in device:
                    continue
                draft = ctx.draft(source)
                more = f"{name}.device != {device}"
                if isinstance(asked.test, (ast.IfExp, ast.Lambda, ast.NamedExpr)):
                    draft.suffix(asked.test, f" or {more}")
                else:
                    draft.replace(asked.test, f"{draft.segment(asked.test)} or {more}")
                yield Proposal(
                    say("make {own}.{attribute} anew when the device has changed", own=own, attribute=attribute),
                    [draft],
                )
                return


def _questions(setting: classes.Setting) -> Iterator[ast.If]:
    """The conditions under which the statement runs, or the method with it: ``if n > self.kept: self.build(n)``."""
    source, own = setting.site.source, receiver(setting.method)
    if setting.method.name == "__init__":
        return
    statements: list[ast.AST] = [setting.statement]
    node = source.class_of(setting.statement)
    for call in ast.walk(node) if node is not None else ():
        if isinstance(call, ast.Call) and last_name(call.func) == setting.method.name and root(call.func) == own:
            statements.append(source.statement(call) or call)
    for statement in statements:
        for up in source.ancestors(statement):
            if isinstance(up, ast.If) and statement in up.body and _asks_for(up.test, own):
                yield up


def _frame_of(ctx: Context, source: Source, node: ast.AST) -> FrameType | None:
    """The stray's frame, where that runs the same function."""
    stray = ctx.stray
    if stray is None or stray.site.source is not source:
        return None
    same = source.function(stray.site.node) is source.function(node)
    return stray.site.frame if same else None


def _asks_for(test: ast.expr, own: str) -> bool:
    """Does the condition ask whether what is kept is there, or large enough: of the attribute itself, or of another?

    ``if self._mask is None``, ``if not hasattr(self, "_mask")``, ``if n > self._length_kept``
    """
    return any(isinstance(n, ast.Name) and n.id == own for n in ast.walk(test)) and not any(
        isinstance(n, ast.Attribute) and n.attr in ("training", "device") for n in ast.walk(test)
    )
