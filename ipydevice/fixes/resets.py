"""Methods that put an object's tensors back as they were, and forget where they have been moved since."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

from ipydevice import placement
from ipydevice.diagnose import infer
from ipydevice.diagnose.evaluate import MISSING, attribute
from ipydevice.diagnose.finding import Site
from ipydevice.diagnose.source import Source
from ipydevice.fixes import classes, results
from ipydevice.fixes.context import Context, Proposal
from ipydevice.fixes.edits import Draft
from ipydevice.fixes.factories import fresh
from ipydevice.fixes.names import last_name, parameters, receiver
from ipydevice.language import say
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
        if _was_given_on_target(ctx, owner, method):
            continue  # what it was given last is on the device: something else has replaced that
        draft = ctx.draft(source)
        done = [
            name
            for statement in ast.walk(method)
            for given, value, name in _settings(statement, receiver(method))
            if _kept_there(ctx, draft, source, method, given, value, name)
        ]
        done += [
            "" for node in ast.walk(method) if _taken_over_there(ctx, draft, source, owner, node, receiver(method))
        ]
        if any(name in ("", stray.attribute) for name in done):
            what = say("what it sets") if "" in done else f"{receiver(method)}.{stray.attribute}"
            note = say("it gets the device of the value that it replaces")
            yield Proposal(
                say("let {method}() keep {what} on its device", method=method.name, what=what), [draft], note=note
            )
            return


def _was_given_on_target(ctx: Context, owner: Any, method: _Method) -> bool:
    """Is all that the notebook hands to this method on the device already?"""
    found: set[str | None] = set()
    for name in parameters(method)[1:]:
        for site, value in results.arguments(ctx, method, name):
            call = site.source.parent(value)
            call = site.source.parent(call) if isinstance(call, ast.keyword) else call
            if not (isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute)):
                continue
            live = ctx.value(Site(site.source, call.func.value, site.frame))
            if last_name(call.func.value) != "__dict__" and (live is MISSING or type(live) is type(owner)):
                found.add(infer.device(value, ctx.scope(site)))
    return found == {ctx.target}


def _was_moved(ctx: Context, owner: Any, attribute: str, methods: list[tuple[Source, _Method]]) -> bool:
    """Is there something that moves the attribute, or makes it on the device, before the method replaces it?"""
    if placement.is_module(owner) and attribute in (attributes(owner).get("_buffers") or ()):
        return True
    for _, method in methods:
        for node in ast.walk(method):
            for _, value, name in _settings(node, receiver(method)):
                if name in ("", attribute) and (
                    method.name in _MOVERS or (method.name == "__init__" and _says_device(value))
                ):
                    return True
    return any(
        isinstance(node, ast.Assign)
        and isinstance(node.targets[0], ast.Attribute)
        and node.targets[0].attr == attribute
        and _says_device(node.value)
        for cell in ctx.work.order
        for node in ctx.work.effects(cell).tree.body
    )


def _settings(node: ast.AST, own: str) -> Iterator[tuple[ast.expr, ast.expr, str]]:
    """(target or name, value, attribute) of ``self.x = ...``, and with "" of ``setattr(self, name, ...)``."""
    for target, value in classes.pairs(node):
        if isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name) and target.value.id == own:
            yield target, value, target.attr
    match node:
        case ast.Call(func=ast.Name(id="setattr"), args=[ast.Name(id=holder), given, value]) if holder == own:
            yield given, value, given.value if isinstance(given, ast.Constant) and type(given.value) is str else ""


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


def _taken_over_there(ctx: Context, draft: Draft, source: Source, owner: Any, node: ast.AST, own: str) -> bool:
    """``self.__dict__.update(state)``: each tensor of it is moved to where the object's tensors are."""
    match node:
        case ast.Call(
            func=ast.Attribute(
                value=ast.Attribute(value=ast.Name(id=holder), attr="__dict__")
                | ast.Call(func=ast.Name(id="vars"), args=[ast.Name(id=holder)]),
                attr="update",
            ),
            args=[given],
        ) if holder == own and not node.keywords:
            pass
        case _:
            return False
    first = next((name for name, live in attributes(owner).items() if ctx.strays_like(live)), None)
    asked = _asks_for_tensors(ctx, Site(source, node), owner)
    if first is None or asked is None or any(isinstance(n, ast.Call) for n in ast.walk(given)):
        return False
    moved = f"v.to({own}.{first}.device)" + (f" if {asked}(v) else v" if asked else "")
    draft.replace(given, f"{{k: {moved} for k, v in {source.segment(given)}.items()}}")
    return True


def _asks_for_tensors(ctx: Context, site: Site, owner: Any) -> str | None:
    """How the code asks whether it is a tensor; "" where the object keeps nothing else, None where it has no name."""
    if all(placement.is_tensor(live) for live in attributes(owner).values()):
        return ""
    return ctx.work.torch_name(site, "is_tensor")


def _kept_there(
    ctx: Context, draft: Draft, source: Source, method: _Method, given: ast.expr, value: ast.expr, name: str
) -> bool:
    """Make the value of one assignment on the device of the old one, where it is none that is made of the old one."""
    own, stray = receiver(method), ctx.stray
    old = any(isinstance(n, ast.Attribute) and n.attr == name and last_name(n.value) == own for n in ast.walk(value))
    if old or stray is None or isinstance(value, ast.Constant) or _says_device(value):
        return False
    if name and not ctx.strays_like(attribute(stray.owner, name)):
        return False
    asked = given if isinstance(given, ast.Attribute) and given.attr == name else None
    code = f"{own}.{name}.device" if asked is not None else f"getattr({own}, {source.segment(given)}).device"
    calls = fresh(value, ctx.scope(Site(source, value)))
    for call in calls:
        draft.keyword(call, "device", code)
    kind = _asks_for_tensors(ctx, Site(source, value), stray.owner) if asked is None else ""
    if calls:
        return True
    if kind:  # a loop over all that is saved, numbers and texts too
        draft.replace(
            value, f"{source.segment(value)}.to({code}) if {kind}({source.segment(value)}) else {source.segment(value)}"
        )
    else:
        draft.suffix(value, f".to({code})")
    return True
