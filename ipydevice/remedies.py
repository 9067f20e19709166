"""Edits of the cells for what the table calls odd: joins `listing`, `diagnose` and `fixes`, as `postmortem` does.

Nothing has failed, so no frame tells where to look: the way leads from the names of the workspace to the cells that
bind them.  The plan of what to run again ends with the last cell that uses the name.
"""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ipydevice import fixes, listing, placement
from ipydevice.cells import Cell, CellHistory
from ipydevice.diagnose.finding import Finding, Site, Step, Stray
from ipydevice.diagnose.frames import Sources
from ipydevice.diagnose.origin import Tracer
from ipydevice.diagnose.source import Source
from ipydevice.diagnosis import Fix, Inventory
from ipydevice.fixes.context import Context, Proposal
from ipydevice.fixes.names import Effects
from ipydevice.language import say
from ipydevice.listing.memory import ways_to_free
from ipydevice.listing.oddity import Clue, Oddity
from ipydevice.messages import Mismatch

MOST_ODDITIES = 4  # each costs as much as the fixes of an error
MOST_FIXES = 9
# Mended behind the statement that moves or loads: for these a cell that nobody wrote stands for the failed one.
_MENDED_BEHIND = ("optimizer_state", "meta_not_materialized")


def with_edits(
    inventory: Inventory, oddities: Sequence[Oddity], history: CellHistory, namespace: Mapping[str, Any]
) -> Inventory:
    """The inventory with edits of the cells, each before the code that mends the objects alone."""
    found: list[Fix] = list(inventory.fixes)
    for oddity in [one for one in oddities if one.clues][:MOST_ODDITIES]:
        at = next((i for i, fix in enumerate(found) if oddity.code and fix.setup == oddity.code), len(found))
        try:
            edits = next(filter(None, (list(_edits(clue, history, namespace)) for clue in oddity.clues)), [])
        except Exception:  # whatever the cells hold, the table is shown
            if os.environ.get("IPYDEVICE_DEBUG"):
                raise
            continue
        found[at:at] = [edit for edit in edits if edit not in found]
    # However much is odd, who holds memory is told with what frees it.
    freeing = list(ways_to_free(inventory.memory))
    mending = [fix for fix in found if fix not in freeing]
    return replace(inventory, fixes=(*mending[: MOST_FIXES - len(freeing)], *freeing))


def _edits(clue: Clue, history: CellHistory, namespace: Mapping[str, Any]) -> Iterator[Fix]:
    """The best edit; what only mends the objects is offered already."""
    finding = _finding(clue, history, dict(namespace))
    if finding is None:
        return
    with placement.quiet():
        own = _OWN.get(finding.cause)
        if own is None:
            proposed = fixes.propose(finding)
        else:
            context = Context(finding)
            proposed = [fix for proposal in own(context, clue) for fix in context.fixes(proposal)]
    unwritten = finding.history.cells[-1].raw if clue.cause in _MENDED_BEHIND else None
    for fix in [fix for fix in proposed if fix.kind != "repair"][:1]:
        yield replace(fix, rerun=tuple(run for run in fix.rerun if run.source != unwritten))


def _pinned(context: Context, clue: Clue) -> Iterator[Proposal]:
    """``DataLoader(data)`` becomes ``DataLoader(data, pin_memory=True)``."""
    step = context.chain[0]
    match step.value:
        case ast.Call(func=made, keywords=keywords) as call if ast.unparse(made).endswith("DataLoader") and all(
            one.arg is not None for one in keywords
        ):
            draft = context.draft(step.site.source)
            given = next((one.value for one in keywords if one.arg == "pin_memory"), None)
            draft = draft.keyword(call, "pin_memory", "True") if given is None else draft.replace(given, "True")
            yield Proposal(say("let {name} pin its batches", name=clue.path), [draft])


def _made_again(_: Context, clue: Clue) -> Iterator[Proposal]:
    """The cells run again that make an optimizer of a model which has been made anew since."""
    yield Proposal(say("run the cell again that makes {name}", name=clue.path), anew=frozenset({clue.beside}))


_OWN = {"unpinned_loader": _pinned, "stale_optimizer": _made_again}


def _finding(clue: Clue, history: CellHistory, namespace: dict[str, Any]) -> Finding | None:
    """What an error would have found out, had the odd object led to one."""
    root = re.match(r"\w+", clue.path)
    name = "" if root is None else root.group()
    history = _until_last_use(history, {name, clue.beside})
    if not history.cells:
        return None
    if clue.cause in _MENDED_BEHIND:
        after = Cell(history.cells[-1].number + 1, "\n".join(filter(None, (name, clue.beside))))
        history = replace(history, cells=[*history.cells, after])
    sources = Sources(history)
    tracer = Tracer(sources, [], namespace)
    last = sources.of_cell(history.cells[-1])
    live = listing.value_at(namespace, clue.path)
    owner = listing.value_at(namespace, clue.owner) if clue.owner else None
    chain = list(_chain(tracer, name, owner, clue.attribute))
    if not chain or not _explains(chain[0], clue):
        return None
    use = Site(last, _last_use(last, name))
    return Finding(
        mismatch=Mismatch(id="", family="common_check", text="", devices=(clue.device, clue.target)),
        failed=use,
        history=history,
        namespace=namespace,
        start=Site(last, last.tree),
        stray=Stray(
            site=use,
            member=clue.path.removeprefix(name),
            device=clue.device,
            kind=placement.kind_of(live) or "tensor",
            value=live,
            known=True,
            owner=owner,
            attribute=clue.attribute,
            via="attribute" if owner is not None else "",
            path=clue.path,
        ),
        target=clue.target,
        chain=chain,
        owner_chain=tracer.trace_global(name) if owner is not None else [],
        cause=clue.cause,
        confidence="certain",
    )


def _chain(tracer: Tracer, name: str, owner: Any, attribute: str) -> Iterator[Step]:
    """How the object came about: set on its owner, or bound to its name."""
    if owner is None or placement.is_optimizer(owner):
        yield from tracer.trace_global(name)
        return
    first = re.match(r"\w+", attribute)
    step = None if first is None else tracer.of_attribute_of(owner, first.group())
    if step is not None:
        yield step
        if step.value is not None:
            yield from tracer.trace(Site(step.site.source, step.value))


def _explains(made: Step, clue: Clue) -> bool:
    """Whether the oddity can come from there: a model that is moved where it is made is torn apart elsewhere."""
    if clue.cause == "module_added_after_move":
        return made.site.source.function(made.site.node) is None  # put in by a cell, not by the model's class
    match made.value:
        case ast.Call(func=ast.Attribute(attr="to" | "cuda" | "cpu")):
            return clue.cause != "model_not_moved"
    return True


def _until_last_use(history: CellHistory, names: set[str]) -> CellHistory:
    """The cells up to the last one that uses one of the names, without those that failed before it."""
    uses = [i for i, cell in enumerate(history.cells) if not cell.is_ours and _uses(history, cell, names)]
    cells = history.cells[: uses[-1] + 1] if uses else []
    return replace(history, cells=[cell for cell in cells if cell is cells[-1] or cell.success is not False], _open=[])


def _uses(history: CellHistory, cell: Cell, names: set[str]) -> bool:
    if not any(name and name in cell.raw for name in names):  # parsing takes a thousand times as long
        return False
    try:
        effects = Effects(Source(history.python(cell)[0]).tree)
    except (SyntaxError, ValueError, RecursionError):
        return False
    return not names.isdisjoint(effects.reads | effects.binds)


def _last_use(source: Source, name: str) -> ast.AST:
    uses = [node for node in ast.walk(source.tree) if isinstance(node, ast.Name) and node.id == name]
    return max(uses, key=lambda node: (node.lineno, node.col_offset)) if uses else source.tree
