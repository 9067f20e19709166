"""Methods that put an object's tensors back as they were, and forget where they have been moved since."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

from ipydevice import placement
from ipydevice.diagnose.finding import Site
from ipydevice.diagnose.source import Source
from ipydevice.fixes import classes
from ipydevice.fixes.context import Context, Proposal
from ipydevice.fixes.edits import Draft
from ipydevice.fixes.factories import fresh
from ipydevice.fixes.names import last_name, receiver
from ipydevice.placement.kinds import attributes

_MOVERS = ("to", "cuda", "cpu", "to_device", "move", "move_to", "_apply")
_Method = ast.FunctionDef | ast.AsyncFunctionDef


def put_back(ctx: Context) -> Iterator[Proposal]:
    """``self.hits = torch.zeros(n)`` in ``reset()`` gets ``device=self.hits.device``: what replaces it stays there."""
    stray = ctx.stray
    owner = stray.owner if stray is not None else None
    if stray is None or owner is None or not stray.attribute.isidentifier() or not ctx.strays_like(stray.value):
        return
    nodes = list(classes.class_nodes(ctx, owner))
    methods = [(source, m) for source, node in nodes for m in node.body if isinstance(m, _Method)]
    if not _was_moved(ctx, owner, stray.attribute, methods):
        return
    for source, method in methods:
        if method.name in ("__init__", *_MOVERS) or _runs_at_first(method.name, methods):
            continue
        draft = ctx.draft(source)
        done = [name for s in ast.walk(method) if (name := _kept_there(ctx, draft, source, method, s)) is not None]
        if any(name in ("", stray.attribute) for name in done):
            what = "what it sets" if "" in done else f"{receiver(method)}.{stray.attribute}"
            note = "it gets the device of the value that it replaces"
            yield Proposal(f"let {method.name}() keep {what} on its device", [draft], note=note)
            return


def _was_moved(ctx: Context, owner: Any, attribute: str, methods: list[tuple[Source, _Method]]) -> bool:
    """Is there something that moves the attribute, or makes it on the device, before the method replaces it?"""
    if placement.is_module(owner) and attribute in (attributes(owner).get("_buffers") or ()):
        return True
    for _, method in methods:
        for node in ast.walk(method):
            if not (_sets(node, method, attribute) and isinstance(node, (ast.Assign, ast.Call))):
                continue
            value = node.value if isinstance(node, ast.Assign) else node.args[2]
            if method.name in _MOVERS or (method.name == "__init__" and _says_device(value)):
                return True
    return any(
        isinstance(node, ast.Assign)
        and isinstance(node.targets[0], ast.Attribute)
        and node.targets[0].attr == attribute
        and _says_device(node.value)
        for cell in ctx.work.order
        for node in ctx.work.effects(cell).tree.body
    )


def _sets(node: ast.AST, method: _Method, attribute: str) -> bool:
    """``self.<attribute> = ...``, or ``setattr(self, name, ...)`` with a name that may be it."""
    own = receiver(method)
    match node:
        case ast.Assign(targets=[ast.Attribute(value=ast.Name(id=holder), attr=name)]):
            return holder == own and name == attribute
        case ast.Call(func=ast.Name(id="setattr"), args=[ast.Name(id=holder), name, _]):
            return holder == own and (not isinstance(name, ast.Constant) or name.value == attribute)
    return False


def _says_device(value: ast.AST) -> bool:
    return any(
        isinstance(n, ast.Call) and (last_name(n.func) in ("to", "cuda") or any(k.arg == "device" for k in n.keywords))
        for n in ast.walk(value)
    )


def _runs_at_first(name: str, methods: list[tuple[Source, _Method]]) -> bool:
    """Does ``__init__`` call it, when there is no value yet to ask?"""
    return any(
        isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == name
        for _, method in methods
        if method.name == "__init__"
        for node in ast.walk(method)
    )


def _kept_there(ctx: Context, draft: Draft, source: Source, method: _Method, node: ast.AST) -> str | None:
    """Make the value of one assignment on the device of the old one; the attribute, "" for any, None for no change."""
    own = receiver(method)
    match node:
        case ast.Assign(targets=[ast.Attribute(value=ast.Name(id=holder), attr=name)], value=value) if holder == own:
            stray = ctx.stray
            if stray is None or not ctx.strays_like(attributes(stray.owner).get(name, stray.value)):
                return None
            code = f"{own}.{name}.device"
        case ast.Call(func=ast.Name(id="setattr"), args=[ast.Name(id=holder), given, value]) if holder == own:
            name, code = "", f"getattr({own}, {source.segment(given)}).device"
        case _:
            return None
    if isinstance(value, ast.Constant) or _says_device(value):
        return None
    calls = fresh(value, ctx.scope(Site(source, value)))
    for call in calls:
        draft.keyword(call, "device", code)
    if not calls:
        draft.suffix(value, f".to({code})")
    return name
