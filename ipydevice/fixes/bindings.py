"""Which statement of the notebook binds a name last, before the failure."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

from ipydevice import placement
from ipydevice.diagnose.finding import Site, Step
from ipydevice.fixes import classes
from ipydevice.fixes.context import Context
from ipydevice.fixes.names import bound


def last_binding(ctx: Context, name: str) -> Step | None:
    """The statement at the level of a cell that gave a workspace name its value."""
    return next(all_bindings(ctx, name), None)


def all_bindings(ctx: Context, name: str) -> Iterator[Step]:
    """The assignments of a workspace name at the level of a cell, the last first."""
    for cell in reversed(ctx.work.binders(name)):
        source = classes.cell_source(ctx, cell)
        for statement in reversed(source.tree.body):
            if cell is ctx.work.failed and statement.lineno > ctx.failed_line:
                continue
            if name in bound([statement]) and isinstance(statement, (ast.Assign, ast.AnnAssign)):
                yield Step("assignment", Site(source, statement), statement.value)


def names_of(ctx: Context, wanted: Any) -> Iterator[str]:
    """Workspace names of an object."""
    for name, live in list(ctx.finding.namespace.items()):
        if live is wanted and wanted is not None and not name.startswith("_"):
            yield name


def names_around(ctx: Context, wanted: Any) -> Iterator[str]:
    """Workspace names of the modules inside which a module is."""
    for name, live in list(ctx.finding.namespace.items()):
        if placement.is_module(live) and not name.startswith("_") and contains(live, wanted):
            yield name


def of_path(ctx: Context) -> Iterator[Step]:
    """The binding of the stray tensor itself, where the workspace has a plain name for it."""
    stray = ctx.stray
    if stray is None or not stray.known or not placement.is_tensor(stray.value):
        return
    for name in names_of(ctx, stray.value):
        step = last_binding(ctx, name)
        if step is not None:
            yield step


def of_module(ctx: Context) -> Iterator[Step]:
    """The binding of the stray module, or of the module that holds the stray."""
    stray = ctx.stray
    if stray is None:
        return
    for wanted in (stray.value, stray.owner):
        if placement.is_module(wanted):
            for name in names_of(ctx, wanted):
                yield from all_bindings(ctx, name)
            return


def of_outer_module(ctx: Context) -> Iterator[Step]:
    """The bindings of the modules of the workspace inside which the stray is."""
    stray = ctx.stray
    if stray is None:
        return
    wanted = stray.value if placement.is_module(stray.value) else stray.owner
    found: list[Step] = []
    for name, live in list(ctx.finding.namespace.items()):
        if placement.is_module(live) and not name.startswith("_") and contains(live, wanted):
            found += all_bindings(ctx, name)
    found.sort(key=lambda step: -ctx.work.position(step.site.source.cell))
    yield from found


def contains(module: Any, wanted: Any, depth: int = 8) -> bool:
    """Is the module among the registered ones inside the other?"""
    if depth == 0 or wanted is None:
        return False
    for member in placement.members(module):
        if member.via == "module" and (member.value is wanted or contains(member.value, wanted, depth - 1)):
            return True
    return False
