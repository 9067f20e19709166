"""What a repairer of one cause works with, and how its proposal becomes a Fix."""

from __future__ import annotations

import ast
import difflib
import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from ipydevice import placement
from ipydevice.cells import Cell
from ipydevice.diagnose.evaluate import MISSING, Scope, value
from ipydevice.diagnose.finding import Finding, Site, Step, Stray
from ipydevice.diagnose.source import Source
from ipydevice.diagnosis import Edit, Fix
from ipydevice.fixes import sound, undo
from ipydevice.fixes.device_expr import device_expression, is_literal
from ipydevice.fixes.edits import Draft
from ipydevice.fixes.names import own_nodes
from ipydevice.fixes.rerun import Plan, Rerunner
from ipydevice.fixes.workspace import Workspace
from ipydevice.language import say

Repairer = Callable[["Context"], Iterator["Proposal"]]


@dataclass(slots=True)
class Proposal:
    """One way to mend it, before it is known what it costs."""

    title: str
    drafts: list[Draft] = field(default_factory=list)
    live: str | None = None  # code that does the same to the objects that exist now
    note: str = ""
    certain: bool = True  # False: something could not be checked
    undo: str | None = None  # code that takes back what the failed run has done to objects that stay
    anew: frozenset[str] = frozenset()  # names that mean something new already: what uses them is run again


class Context:
    """The finding, the workspace and the few questions that all repairers ask."""

    def __init__(self, finding: Finding) -> None:
        self.finding = finding
        self.work = Workspace(finding)
        self.rerunner = Rerunner(self.work)
        self.costly: list[Fix] = []  # edits whose re-run would lose work
        self.reached: list[Any] | None = None  # by `results.reachable`
        self.guessed = False  # was a device told by a name alone, since this was last set to False?

    @property
    def stray(self) -> Stray | None:
        return self.finding.stray

    @property
    def chain(self) -> list[Step]:
        return self.finding.chain

    @property
    def target(self) -> str | None:
        return self.finding.target

    def draft(self, source: Source) -> Draft:
        return Draft(source)

    def device(self, site: Site, *, avoid: Iterable[str] = ()) -> str | None:
        """The code for the target device at `site`."""
        said = device_expression(self.work, site, avoid=frozenset(avoid))
        if said is None:
            return None
        self.guessed = self.guessed or not said.seen
        return said.code

    def scope(self, site: Site) -> Scope:
        return self.work.scope(site)

    def value(self, site: Site, node: ast.AST | None = None) -> Any:
        """The live value of an expression at `site`; MISSING where a frame is gone."""
        node = site.node if node is None else node
        here = Site(site.source, node, site.frame)
        for name in own_nodes([node]):
            if isinstance(name, ast.Name) and self.work.value(here, name.id) is MISSING:
                return MISSING
        return value(node, self.scope(site))

    def strays_like(self, live: Any) -> bool:
        """Is this a tensor on another device than it should be, and no index or length by rule?"""
        if not placement.is_tensor(live) or self.target is None:
            return False
        stray = self.stray
        return placement.device_of(live) != self.target and (stray is None or placement.device_of(live) == stray.device)

    def is_stray(self, site: Site) -> bool:
        """`strays_like` of the value at `site`; where nothing lives, by what the texts tell of it."""
        live = self.value(site)
        if live is not MISSING:
            return self.strays_like(live)
        read, stray = self.finding.read, self.stray
        return read is not None and stray is not None and stray.device != self.target and read(site) == stray.device

    @cached_property
    def failed_line(self) -> int:
        """The line of the failed cell that was running, whatever code it had called; 0 where that isn't known."""
        for site in (self.finding.start, self.finding.failed):
            if site is not None and site.source.cell is self.work.failed:
                running = site.frame.f_lineno if site.frame is not None else 0  # of a frame that has ended, its last
                statement = site.source.statement(site.node)
                return running if statement is None else statement.lineno
        return 0

    # -- from proposals to fixes ----------------------------------------------------------

    def fixes(self, proposal: Proposal) -> list[Fix]:
        """The fix, and its live sibling where a re-run would lose work."""
        edits = [draft.edit for draft in proposal.drafts]
        if any(edit is None for edit in edits) or not all(sound.is_sound(self, draft) for draft in proposal.drafts):
            return []
        made = [edit for edit in edits if edit is not None]
        if proposal.anew:
            plan = self.rerunner.from_cells(set(proposal.anew))
            return [self._edit(proposal, made, plan)] if len(plan.cells) > 1 else []
        if not made:
            return [self._repair(proposal)] if proposal.live and not self._built_anew(proposal.live) else []
        if any(edit.file for edit in made):
            return self._patches(proposal, made)
        after = self._after(proposal.drafts, made)
        plan = self.rerunner.plan(after, self._trees(proposal.drafts))
        edit = self._with_memos(proposal, self._edit(proposal, made, plan), plan)
        if proposal.undo is not None and not self._rebuilds(plan, proposal.undo):
            edit = replace(edit, setup="\n".join(filter(None, (proposal.undo, edit.setup))))
        if plan.loses_work:
            self.costly.append(edit)
        only_failed = plan.cells == [self.work.failed]
        if proposal.live is None or only_failed or self._built_anew(proposal.live):
            return [edit]
        if plan.loses_work:
            gentle = self.rerunner.only_failed()
            kept = replace(
                edit,
                setup=proposal.live,
                rerun=self._with_texts(gentle, after),
                note=_sentences(
                    proposal.note, say("the same is done to the live objects, so nothing is trained again")
                ),
            )
            return [kept, self._repair(proposal), edit]
        return [edit, self._repair(proposal)]

    def _after(self, drafts: list[Draft], edits: list[Edit]) -> dict[Cell, str]:
        after: dict[Cell, str] = {}
        for draft, edit in zip(drafts, edits, strict=True):
            position = self.work.position(draft.source.cell)
            if position < len(self.work.order):
                after[self.work.order[position]] = edit.after
        return after

    def _trees(self, drafts: list[Draft]) -> dict[Cell, ast.Module]:
        """The cells of the drafts as they are after them."""
        order = self.work.order
        found: dict[Cell, ast.Module] = {}
        for draft in drafts:
            position, text = self.work.position(draft.source.cell), draft.text
            if position < len(order) and text is not None:
                found[order[position]] = draft.tree(text)
        return found

    def _with_texts(self, plan: Plan, after: dict[Cell, str]) -> tuple[Any, ...]:
        return tuple(
            replace(run, source=after.get(cell, run.source)) for cell, run in zip(plan.cells, plan.rerun, strict=True)
        )

    def _edit(self, proposal: Proposal, edits: list[Edit], plan: Plan) -> Fix:
        literal = any(is_literal(code) for code in _devices(edits))
        return Fix(
            title=proposal.title,
            kind="edit",
            edits=tuple(edits),
            rerun=plan.rerun,
            note=_sentences(proposal.note, *plan.notes, *self._half_done(plan)),
            checked=proposal.certain and (self.target is not None or _needs_no_target(self.finding)) and not literal,
        )

    def _with_memos(self, proposal: Proposal, edit: Fix, plan: Plan) -> Fix:
        """The fix, with code that mends what an edited function has kept already."""
        from ipydevice.fixes import memos
        from ipydevice.fixes.modules import workspace_device

        device = workspace_device(self)
        anew = {name for cell in plan.cells[:-1] for name in self.work.effects(cell).binds}
        found: dict[str, str] = {}
        for draft in proposal.drafts if device is not None else ():
            after = draft.text
            if device is not None and after is not None and "def " in after:
                found |= dict(memos.mended(self, draft.source.tree, draft.tree(after), device))
        code = [one for name, one in found.items() if name not in anew]
        kept = say(
            "what {names} keeps already is mended as well", names=say(" and ").join(n for n in found if n not in anew)
        )
        return replace(edit, setup="\n".join(code), note=_sentences(edit.note, kept)) if code else edit

    def _repair(self, proposal: Proposal) -> Fix:
        plan = self.rerunner.only_failed()
        return Fix(
            title=say("{title}, only for this session", title=proposal.title),
            kind="repair",
            setup=proposal.live,
            rerun=plan.rerun,
            note=_sentences(say("the text stays as it is: after a restart the error is back"), *self._half_done(plan)),
            checked=proposal.certain and proposal.live is not None and _compiles(proposal.live),
        )

    def _rebuilds(self, plan: Plan, code: str) -> bool:
        """Do the cells to run again make anew the objects that the code speaks of?"""
        names = {n.id for n in ast.walk(ast.parse(code)) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}
        return bool(names & set().union(*(self.work.effects(cell).binds for cell in plan.cells)))

    def _built_anew(self, live: str) -> bool:
        """Does the failed cell, which runs after a repair, build the objects of the repair anew?"""
        failed = self.work.failed
        if failed is None:
            return False
        names = {n.id for n in ast.walk(ast.parse(live)) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}
        again = names & self.work.effects(failed).binds
        return any(placement.kind_of(self.finding.namespace.get(name)) is not None for name in again)

    def _half_done(self, plan: Plan) -> list[str]:
        """What the failed cell has done already and does again when it re-runs, and how to take it back."""
        failed, start = self.work.failed, self.finding.start
        if failed is None or start is None or start.source.cell is not failed:
            return []
        line = start.frame.f_lineno if start.frame is not None else 0  # the frame has ended where it raised
        anew = self.work.effects(failed).binds.union(*(self.work.effects(cell).binds for cell in plan.cells))
        return [
            say("the failed run has already called {name}.{method}()", name=name, method=method)
            + undo.spoken(self.work.effects(failed).tree, node)
            for name, method, node in self.work.effects(failed).unsafe
            if node.lineno < line and name not in anew
        ][:2]

    def _patches(self, proposal: Proposal, edits: list[Edit]) -> list[Fix]:
        from ipydevice.fixes.patches import patch

        return patch(self, proposal.title, proposal.note, edits, proposal.live)


def diff(edit: Edit) -> str:
    """The edit as a unified diff, as git writes it; a file that is not below the working directory goes by its path."""
    name = edit.file or f"In [{edit.cell}]"
    below = _below_here(name)
    old, new = (name, name) if below is None else (f"a/{below}", f"b/{below}")
    lines = difflib.unified_diff(edit.before.splitlines(keepends=True), edit.after.splitlines(keepends=True), old, new)
    return "".join(line if line.endswith("\n") else line + "\n\\ No newline at end of file\n" for line in lines)


def _below_here(name: str) -> str | None:
    """The path from the working directory; None where it leads out of it."""
    try:
        path = os.path.relpath(os.path.realpath(name), os.path.realpath(os.curdir))
    except (OSError, ValueError):  # the folder is gone; another drive of Windows
        return None if os.path.isabs(name) else name
    return None if path.startswith(os.pardir) else path.replace(os.sep, "/")


def _sentences(*parts: str) -> str:
    return say("; ").join(part for part in parts if part)


def _needs_no_target(finding: Finding) -> bool:
    """Nothing meets anything where a device is only missing."""
    return finding.mismatch.kind == "availability"


def _devices(edits: list[Edit]) -> list[str]:
    """Device literals that the edits bring in."""
    found: Counter[str] = Counter()
    for edit in edits:
        found += Counter(_LITERAL.findall(edit.after)) - Counter(_LITERAL.findall(edit.before))
    return list(found)


_LITERAL = re.compile(r"""["'](?:(?:cuda|xpu|hpu|npu):\d+|mps)["']""")


def _compiles(code: str) -> bool:
    try:
        compile(code, "<fix>", "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    except SyntaxError:
        return False
    return True
