"""Objects of a class that has been defined anew since: they keep the old one until they are built again."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

from ipydevice.fixes import classes
from ipydevice.fixes.context import Context, Proposal
from ipydevice.language import say
from ipydevice.placement.kinds import class_name, made_by_statement


def built_again(ctx: Context) -> Iterator[Proposal]:
    """Run the cell that builds the object, where its class is mended already and only the object is the old one."""
    stray = ctx.stray
    owner = stray.owner if stray is not None else None
    if stray is None or owner is None or not made_by_statement(type(owner)):
        return
    name = class_name(type(owner))
    cells = [cell for cell in ctx.work.binders(name) if name in ctx.work.effects(cell).definitions]
    live = ctx.finding.namespace.get(name)
    if len(cells) < 2 or live is type(owner) or not isinstance(live, type) or class_name(live) != name:
        return
    attribute = stray.attribute.replace("[", ".").split(".")[0]
    if not attribute or _sets_it_still(ctx, cells[-1], name, attribute):
        return
    named = [n for n, held in list(ctx.finding.namespace.items()) if held is owner and not n.startswith("_")]
    yield Proposal(
        say(
            "build {object} again, of the {name} of In [{cell}]",
            object=named[0] if named else say("the object"),
            name=name,
            cell=cells[-1].number,
        ),
        note=say(
            "it was built when {name} was another class, and an object keeps the class it was built of", name=name
        ),
        anew=frozenset([name]),
    )


def _sets_it_still(ctx: Context, cell: Any, name: str, attribute: str) -> bool:
    """Does the new class keep it as the old one did, as a plain attribute?"""
    source = classes.cell_source(ctx, cell)
    for node in source.nodes:
        if isinstance(node, ast.ClassDef) and node.name == name:
            return any(True for _ in classes.settings_in(source, node, attribute))
    return True
