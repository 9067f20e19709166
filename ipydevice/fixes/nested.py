"""Modules deep in a module's own lists, tuples, dicts and plain objects: a second, registered list makes them known."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from typing import Any

from ipydevice import placement
from ipydevice.diagnose.evaluate import MISSING, Scope, value
from ipydevice.fixes import classes
from ipydevice.fixes.context import Context, Proposal
from ipydevice.fixes.modules import live_name, workspace_device
from ipydevice.fixes.names import receiver
from ipydevice.language import say
from ipydevice.placement.kinds import attributes, home_of

_DEPTH = 3
_TABLES = ("_modules", "_parameters", "_buffers")
_GROWS = ("append", "extend", "insert", "update", "setdefault", "add")


def registered_beside(ctx: Context, owners: Iterable[Any]) -> Iterator[Proposal]:
    """``self.terms_modules = nn.ModuleList(m for _, m in self.terms)`` below what fills ``self.terms`` in ``__init__``.

    For containers that no ModuleList can stand in for: of pairs, of dicts, of numbers and modules.
    """
    seen: set[int] = set()
    for owner in (*owners, *_on_the_path(ctx)):
        if not placement.is_module(owner) or id(owner) in seen:
            continue
        seen.add(id(owner))
        for attribute, held in list(attributes(owner).items()):
            if attribute not in _TABLES and type(held) in (list, tuple, dict) and _has_stray(ctx, held):
                proposal = _beside(ctx, owner, attribute, held)
                if proposal is not None:
                    yield proposal


def _on_the_path(ctx: Context) -> Iterator[Any]:
    """The objects along the way by which the workspace reaches the stray, the nearest first."""
    stray = ctx.stray
    try:
        node: ast.AST = ast.parse((stray.path if stray is not None else None) or "", mode="eval").body
    except SyntaxError:
        return
    while isinstance(node, (ast.Attribute, ast.Subscript)):
        node = node.value
        live = value(node, Scope.of_namespace(ctx.finding.namespace))
        if live is not MISSING:
            yield live


def _has_stray(ctx: Context, held: Any) -> bool:
    stray = ctx.stray
    wanted = [] if stray is None else [v for v in (stray.value, stray.owner) if placement.is_module(v)]
    inside = list(_modules_in(held, _DEPTH))
    return any(one is module for one in wanted for module in inside)


def _modules_in(held: Any, depth: int) -> Iterator[Any]:
    for part in _parts(held):
        if placement.is_module(part):
            yield part
        elif depth > 1:
            yield from _modules_in(part, depth - 1)


def _parts(held: Any) -> list[Any]:
    """What is directly in a built-in container, or in an object of a class of the notebook."""
    if type(held) is dict:
        return list(held.values())
    if type(held) in (list, tuple) or (isinstance(held, tuple) and home_of(held) == "__main__"):
        return list(held)
    return list(attributes(held).values()) if home_of(held) == "__main__" and not placement.is_tensor(held) else []


def _beside(ctx: Context, owner: Any, attribute: str, held: Any) -> Proposal | None:
    setting = next(iter(classes.settings(ctx, owner, attribute)), None)
    if setting is None or setting.method.name != "__init__":
        return None
    site, source = setting.site, setting.site.source
    node, own = source.class_of(setting.statement), receiver(setting.method)
    listing, module = ctx.work.torch_name(site, "nn.ModuleList"), ctx.work.torch_name(site, "nn.Module")
    if node is None or listing is None or module is None or _filled_elsewhere(node, setting.method, attribute):
        return None
    last = _last_filled(setting.method, own, attribute)
    new = f"{attribute}_modules"
    base = classes.super_call(setting.method)
    ready = base is None or base.lineno <= last.lineno
    if not ready or new in attributes(owner) or classes.has_class_attribute(owner, new):
        return None
    code = _gathered(held, f"{own}.{attribute}", module)
    if code is None:
        return None
    draft = ctx.draft(source)
    draft.after(last, f"{own}.{new} = {listing}({code})")
    path, device = classes.path_of(ctx, owner), workspace_device(ctx)
    live = None
    if path is not None and device is not None:
        there = _gathered(held, f"{path}.{attribute}", live_name(ctx, "nn.Module"))
        live = f"{path}.{new} = {live_name(ctx, 'nn.ModuleList')}({there}).to({device})"
    return Proposal(
        say("register the modules of {own}.{attribute}", own=own, attribute=attribute),
        [draft],
        live=live,
        note=say("they join model.parameters() and the checkpoint; build optimizers after it"),
    )


def _last_filled(method: ast.FunctionDef | ast.AsyncFunctionDef, own: str, attribute: str) -> ast.stmt:
    """The last statement of the method itself in which the attribute stands."""
    last = method.body[0]
    for statement in method.body:
        if any(_is_it(node, attribute) for node in ast.walk(statement)):
            last = statement
    return last


def _is_it(node: ast.AST, attribute: str) -> bool:
    return isinstance(node, ast.Attribute) and node.attr == attribute


def _filled_elsewhere(node: ast.ClassDef, init: ast.AST, attribute: str) -> bool:
    """Does another method bind the container anew or put something into it?"""
    for method in node.body:
        if method is init:
            continue
        for part in ast.walk(method):
            if _is_it(part, attribute) and isinstance(part.ctx, (ast.Store, ast.Del)):  # type: ignore[attr-defined]
                return True
            if isinstance(part, ast.Subscript) and isinstance(part.ctx, ast.Store) and _mentions(part.value, attribute):
                return True
            if isinstance(part, ast.Attribute) and part.attr in _GROWS and _mentions(part.value, attribute):
                return True
    return False


def _mentions(node: ast.AST, attribute: str) -> bool:
    return any(_is_it(part, attribute) for part in ast.walk(node))


# -- the code that gathers them -------------------------------------------------------------------


def _gathered(held: Any, path: str, module: str) -> str | None:
    """``m for pair in self.levels for m in pair``: code for all modules in it, told from what is in it now."""
    clauses = _clauses([held], path, module, 0)
    return None if clauses is None else " ".join(["m", *clauses])


def _clauses(level: list[Any], written: str, module: str, depth: int) -> list[str] | None:
    """The loops through containers that are alike, each written `written`; the last one binds ``m``."""
    over = _handing_out(level, written)
    parts = [part for one in level for part in _parts(one)]
    if over is None or not parts or depth == _DEPTH:
        return None
    if all(placement.is_module(part) for part in parts):
        return [f"for m in {over}"]
    deeper = [part for part in parts if not placement.is_module(part) and any(_modules_in(part, _DEPTH))]
    if not deeper:
        return [f"for m in {over} if isinstance(m, {module})"]
    if len(deeper) < len(parts):
        return None
    place = _one_place(parts)
    if place is not None:
        return [f"for {', '.join(place)} in {over}"]
    rest = _clauses(parts, _NAMES[depth], module, depth + 1)
    return None if rest is None else [f"for {_NAMES[depth]} in {over}", *rest]


_NAMES = ("part", "inner", "deep")


def _handing_out(level: list[Any], written: str) -> str | None:
    if all(type(one) is dict for one in level):
        return f"{written}.values()"
    if all(isinstance(one, (list, tuple)) for one in level):
        return written
    return None if any(isinstance(one, (list, tuple, dict)) for one in level) else f"vars({written}).values()"


def _one_place(parts: list[Any]) -> list[str] | None:
    """``_, m`` where all are pairs of something else and a module."""
    if not all(isinstance(part, (list, tuple)) for part in parts) or len({len(part) for part in parts}) != 1:
        return None
    columns = [{placement.is_module(item) for item in column} for column in zip(*parts, strict=True)]
    if columns.count({True}) != 1 or columns.count({False}) != len(columns) - 1:
        return None
    if any(not placement.is_module(item) and any(_modules_in(item, _DEPTH)) for part in parts for item in part):
        return None
    return ["m" if column == {True} else "_" for column in columns]
