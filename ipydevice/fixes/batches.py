"""Whole batches: dicts, lists and objects of tensors, data sets that should stay on the host."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ipydevice import placement
from ipydevice.diagnose.finding import Site, Step
from ipydevice.fixes import classes, moves, phrases
from ipydevice.fixes.context import Context, Proposal
from ipydevice.fixes.names import last_name, receiver
from ipydevice.language import say

HELPER = '''def move_to(batch, device):
    """The batch with every tensor in it on the device, whatever it is made of."""
    if hasattr(batch, "to"):
        return batch.to(device)
    if isinstance(batch, dict):
        return type(batch)({k: move_to(v, device) for k, v in batch.items()})
    if isinstance(batch, tuple) and hasattr(batch, "_fields"):
        return type(batch)(*(move_to(v, device) for v in batch))
    if isinstance(batch, (list, tuple)):
        return type(batch)(move_to(v, device) for v in batch)
    return batch

'''


def container_in_loop(ctx: Context, step: Step) -> Proposal | None:
    """Where nothing lives: what the loop's body uses as a dict or a list has no ``.to()``, but what is in it has."""
    loop = step.site.node
    if ctx.finding.read is None or not isinstance(loop, ast.For):
        return None
    names = [n.id for n in ast.walk(loop.target) if isinstance(n, ast.Name) and n.id in phrases.stray_names(ctx)]
    kind = _used_as(loop.body, names[0]) if len(names) == 1 else None
    site = Site(step.site.source, loop.body[0], step.site.frame)
    device = ctx.device(site, avoid=names) if kind is not None else None
    if kind is None or device is None:
        return None
    name = names[0]
    moved = f'v.to({device}) if hasattr(v, "to") else v'
    code = f"{{k: {moved} for k, v in {name}.items()}}" if kind is dict else f"[{moved} for v in {name}]"
    draft = ctx.draft(site.source)
    draft.top_of(loop.body, f"{name} = {code}")
    return Proposal(say("move the whole of {name} at once", name=name), [draft])


def _used_as(body: list[ast.stmt], name: str) -> type | None:
    """dict or list by how a name is used: ``batch["x"]``, ``f(**batch)``, ``batch.items()``; ``*batch``."""

    def is_it(node: ast.AST) -> bool:
        return isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Load)

    for node in (node for statement in body for node in ast.walk(statement)):
        match node:
            case ast.Subscript(value=value, slice=ast.Constant(value=str())) if is_it(value):
                return dict
            case ast.keyword(arg=None, value=value) | ast.Attribute(value=value, attr="items" | "keys" | "values") if (
                is_it(value)
            ):
                return dict
            case ast.Starred(value=value) | ast.Assign(targets=[ast.Tuple()], value=value) if is_it(value):
                return list
    return None


def whole_batch(ctx: Context) -> Iterator[Proposal]:
    """Move everything in the batch: in one line where it is a dict or list of tensors, else by a helper."""
    place = _batch(ctx)
    if place is None:
        return
    site, name, block = place
    device = ctx.device(site, avoid=[name])
    if device is None:
        return
    live = ctx.work.value(site, name)
    if placement.is_tensor(live):
        return
    flat = phrases.flat_move(live, name, device)
    if flat is not None:
        draft = ctx.draft(site.source)
        anchor, _ = moves.existing_move(ctx, site, block, [name])
        if anchor is not None:
            draft.after(anchor, flat)
        else:
            draft.top_of(block, flat)
        yield Proposal(say("move the whole of {name} at once", name=name), [draft])
    outer = _outermost(site)
    if outer is None or "move_to" in ctx.work.globals_of(site):
        return
    draft = ctx.draft(site.source)
    draft.before(outer, HELPER)
    draft.top_of(block, f"{name} = move_to({name}, {device})")
    yield Proposal(
        say("move the whole of {name}, whatever it is made of", name=name),
        [draft],
        note=say("also what this code does not use"),
    )


def deeper(ctx: Context) -> Iterator[Proposal]:
    """A helper that moves the top level only goes deeper; a class whose ``to`` forgets one member moves it."""
    yield from _forgotten_member(ctx)
    for step in ctx.chain:
        source = step.site.source
        function = source.function(step.site.node)
        if step.how != "return" or not isinstance(function, ast.FunctionDef) or len(function.args.args) < 2:
            continue
        for node in ast.walk(step.site.node):
            match node:
                case ast.DictComp(value=ast.IfExp(test=test, body=body, orelse=ast.Name(id=name) as other)) if (
                    _tests_tensor(test) and _is_move(body) and _nested_dict(ctx)
                ):
                    device = function.args.args[1].arg
                    draft = ctx.draft(source)
                    draft.replace(other, f"{function.name}({name}, {device}) if isinstance({name}, dict) else {name}")
                    yield Proposal(
                        say("let {function} move what is deeper inside as well", function=function.name), [draft]
                    )
                    return


def _tests_tensor(test: ast.expr) -> bool:
    return isinstance(test, ast.Call) and last_name(test.func) in ("isinstance", "is_tensor", "hasattr")


def _is_move(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and last_name(node.func) in ("to", "cuda")


def _nested_dict(ctx: Context) -> bool:
    """Is the stray an item of a dict in the dict?"""
    stray = ctx.stray
    return stray is not None and stray.member.count("[") >= 2 and stray.member.endswith("']")


def _forgotten_member(ctx: Context) -> Iterator[Proposal]:
    """``self.batch = self.batch.to(device)`` beside its like in the class's own ``to``."""
    stray = ctx.stray
    if stray is None or stray.owner is None or not stray.attribute.isidentifier():
        return
    for source, node in classes.class_nodes(ctx, stray.owner):
        for method in node.body:
            if not (isinstance(method, ast.FunctionDef) and method.name in ("to", "cuda", "to_device", "move")):
                continue
            for statement in reversed(method.body):
                if not (isinstance(statement, ast.Assign) and isinstance(statement.value, ast.Call)):
                    continue
                target, call = statement.targets[0], statement.value
                if (
                    isinstance(target, ast.Attribute)
                    and _is_move(call)
                    and source.segment(target.value) == receiver(method)
                ):
                    new, old = f"{receiver(method)}.{stray.attribute}", source.segment(target)
                    text = source.segment(call)
                    if not text.startswith(old) or new == old:
                        continue
                    draft = ctx.draft(source)
                    draft.after(statement, f"{new} = {new}{text[len(old) :]}")
                    yield Proposal(
                        say(
                            "move {name} in {owner}.{method}, beside the others",
                            name=stray.attribute,
                            owner=node.name,
                            method=method.name,
                        ),
                        [draft],
                    )
                    return


def _batch(ctx: Context) -> tuple[Site, str, list[ast.stmt]] | None:
    """(place, name, block) of the loop variable or parameter that holds the stray."""
    for step in ctx.chain:
        loop = step.site.node
        if step.how == "loop" and isinstance(loop, (ast.For, ast.AsyncFor)):
            site = Site(step.site.source, loop.body[0], step.site.frame)
            name = _held_by(loop.target)
            return (site, name, loop.body) if name else None
    return None


def _held_by(target: ast.AST) -> str | None:
    match target:
        case ast.Name():
            return target.id
        case ast.Tuple(elts=[_, ast.Name(id=name)]):  # for i, batch in enumerate(loader)
            return name
        case _:
            return None


def _outermost(site: Site) -> ast.stmt | None:
    outer: ast.stmt | None = site.source.statement(site.node)
    for up in site.source.ancestors(site.node):
        if isinstance(up, ast.stmt):
            outer = up
    return outer


def list_at_use(ctx: Context) -> Iterator[Proposal]:
    """``torch.cat(xs)`` becomes ``torch.cat([t.to(device) for t in xs])``."""
    stray = ctx.stray
    if stray is None or not stray.member or not isinstance(stray.site.node, ast.Name):
        return
    live = ctx.value(stray.site)
    if type(live) not in (list, tuple) or not all(placement.is_tensor(v) for v in live):
        return
    device = ctx.device(stray.site, avoid=[stray.site.node.id])
    if device is not None:
        draft = ctx.draft(stray.site.source)
        draft.replace(stray.site.node, f"[t.to({device}) for t in {stray.site.node.id}]")
        yield Proposal(say("move what is in {name} where it is used", name=stray.site.node.id), [draft])
