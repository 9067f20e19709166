"""Which cells to run again after an edit, in which order, and what that costs.

A cell matters when it uses what an edited cell binds and the failed cell needs what it
makes.  Functions look their names up when they are called, so a cell that only defines a
function need not run again for the names in its body.
"""

from __future__ import annotations

import ast
import builtins
import io
from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import GeneratorType
from typing import Any

from ipydevice import placement
from ipydevice.cells import Cell
from ipydevice.diagnosis import Rerun
from ipydevice.fixes import registries
from ipydevice.fixes.costs import LONG, called, dangers, seconds, trains
from ipydevice.fixes.names import Effects, bound, free, last_name, read, same
from ipydevice.fixes.workspace import Workspace
from ipydevice.language import say
from ipydevice.placement.kinds import attributes

SHORT = 5.0  # seconds of training that nobody minds to run again
WORTH = 20.0  # seconds that numbers without a step counted twice are worth


@dataclass(slots=True)
class Plan:
    """The cells to run, the failed one last."""

    cells: list[Cell] = field(default_factory=list)
    rerun: tuple[Rerun, ...] = ()
    notes: list[str] = field(default_factory=list)
    seconds: float = 0.0  # what the cells took, the failed one left out
    trains: bool = False  # a cell other than the failed one trains
    steps_anew: bool = False  # with less run again, the step that failed half-way would count twice

    @property
    def loses_work(self) -> bool:
        """Would a person rather repair the live objects than run this again?"""
        return self.seconds >= LONG or (self.trains and self.seconds >= SHORT and not self.steps_anew)


class Rerunner:
    """Plans re-runs in one workspace."""

    def __init__(self, work: Workspace) -> None:
        self._work = work

    def plan(self, after: Mapping[Cell, str], trees: Mapping[Cell, ast.Module]) -> Plan:
        """What to run when the cells in `after` have got new raw texts, and these trees."""
        failed = self._work.failed
        if failed is None:
            return Plan()
        order = self._work.order
        edited = [cell for cell in order if cell in after]
        effects = {cell: self._effects(cell, trees) for cell in order}
        roots = list(edited)
        kept = self._kept(order, roots, effects, after)
        again = self._half_stepped(kept, effects)
        if again:
            longer = self._kept(order, [*roots, *again], effects, after)
            # The failed step() has counted already: from a fresh optimizer the numbers are right again.
            if sum(seconds(self._work, cell, effects) for cell in longer[:-1]) < WORTH:
                roots, kept = [*roots, *again], longer
            else:
                again = []
        for _ in range(len(order)):
            pulled = self._makers(order, kept, roots, effects)
            if not pulled:
                break
            roots += pulled
            kept = self._kept(order, roots, effects, after)
        settings = self._settings(order, kept, effects)
        if settings:
            kept = self._kept(order, [*roots, *settings], effects, after)
        plan = self._described(kept, effects, after, failed)
        plan.steps_anew = bool(again)
        return plan

    def _half_stepped(self, kept: list[Cell], effects: dict[Cell, Effects]) -> list[Cell]:
        """The cells that make the optimizer whose step() failed half-way, where no kept cell makes its state anew.

        Of an object around an optimizer, which has stepped by then, also those that make the model.
        """
        stray = self._work.finding.stray
        owner = None if stray is None else stray.owner
        inner = wrapped_optimizer(owner)
        # Without a message nothing has failed: `ipydevice.remedies` asks.
        if not self._work.finding.mismatch.text or (not placement.is_optimizer(owner) and inner is None):
            return []
        found: list[Cell] = []
        for name, live in list(self._work.finding.namespace.items()):
            if name.startswith("_") or not (live is owner or (inner is not None and _is_stepped(live, inner))):
                continue
            makers = self._work.binders(name)
            if inner is not None:
                makers = makers[:1]  # what the later ones bind, they take from the first
            elif any(cell in kept and name in effects[cell].changes for cell in self._work.order[:-1]):
                return []
            found += [cell for cell in makers[-1:] if cell not in kept and cell not in found]
        return found

    def _settings(self, order: list[Cell], kept: list[Cell], effects: dict[Cell, Effects]) -> list[Cell]:
        """The cells that set the default device, where one of `kept` ran before another device was set."""
        setting = [cell for cell in order[:-1] if any(_sets_default(node) for node in effects[cell].nodes)]
        makes = [order.index(cell) for cell in kept[:-1] if effects[cell].values and cell not in setting]
        places = [order.index(cell) for cell in setting]
        first = max((place for place in places if makes and place < makes[0]), default=None)
        if first is None or first == places[-1]:
            return []  # none was in force then, or the same is in force now
        return [order[place] for place in places if place >= first]

    def only_failed(self) -> Plan:
        """Run the failed cell again, nothing else."""
        failed = self._work.failed
        return Plan() if failed is None else self._described([failed], {failed: self._work.effects(failed)}, {}, failed)

    def from_cells(self, names: set[str]) -> Plan:
        """What to run when these names of the workspace mean something new: cells that use them, not define them."""
        failed = self._work.failed
        if failed is None:
            return Plan()
        order = self._work.order
        effects = {cell: self._work.effects(cell) for cell in order}
        kept = self._kept(order, [], effects, {}, set(names))
        return self._described(kept, effects, {}, failed)

    def _effects(self, cell: Cell, trees: Mapping[Cell, ast.Module]) -> Effects:
        if cell not in trees:
            return self._work.effects(cell)
        edited, before = Effects(trees[cell]), self._work.effects(cell).definitions
        for name, node in edited.definitions.items():
            if name in before and same(before[name], node):
                edited.definitions[name] = before[name]  # of which much is known already
        return edited

    def _kept(
        self,
        order: list[Cell],
        roots: list[Cell],
        effects: dict[Cell, Effects],
        after: Mapping[Cell, str],
        new: set[str] | None = None,
    ) -> list[Cell]:
        failed = order[-1]
        if roots == [failed] and not new:  # the last, so that nothing uses what it changes
            return [failed]
        changed: set[str] = set(new or ())
        candidates: list[Cell] = []
        rebound: set[str] = set()  # by a cell that runs again: who bound them later has to bind them once more
        for cell in order:
            own = effects[cell]
            if candidates:
                rebound |= effects[candidates[-1]].values
            if cell in roots:
                changed |= own.values | self._changes(own, cell, effects) | self._rewritten(cell, own, after)
                candidates.append(cell)
            elif self._needs(cell, order, effects) & changed or own.values & rebound:
                changed |= own.values | self._changes(own, cell, effects) | self._rewritten_classes(own, changed)
                candidates.append(cell)
        needed = self._needs(failed, order, effects)
        for cell in roots:  # what the functions of an edited cell read when they are called
            needed |= rebound & set().union(*(free(node) for node in effects[cell].definitions.values()))
        kept = [failed]
        watched = _made_of(effects[cell].tree for cell in candidates)
        for cell in reversed(candidates):
            if cell is failed:
                continue
            own = effects[cell]
            if cell.success is False and cell not in roots and not self._only_there(cell, own.binds & needed):
                continue
            touched = self._changes(own, cell, effects)
            touched |= {name for name, made_of in watched.items() if made_of & touched}
            if cell in roots or (own.binds | touched) & needed:
                kept.append(cell)
                needed |= self._needs(cell, order, effects)
        emptied = self._emptied(roots, kept, effects) & needed
        if emptied and len(kept) < len(candidates):  # what fills them, through hooks and the like, no text tells
            fill = [c for c in candidates if any(_calls(n) & changed for n in effects[c].nodes)]
            kept = [c for c in candidates[::-1] if c in kept or c in fill]
        return kept[::-1]

    def _only_there(self, cell: Cell, names: set[str]) -> bool:
        """Was one of the names bound last by this cell, which failed itself?"""
        return any(self._work.binders(name)[-1] is cell for name in names)

    def _emptied(self, roots: list[Cell], kept: list[Cell], effects: dict[Cell, Effects]) -> set[str]:
        """Lists and dicts that a cell to run again makes empty, that hold something now and that no kept cell fills."""
        found: set[str] = set()
        for cell in roots:
            for statement in effects[cell].tree.body:
                if isinstance(statement, ast.Assign) and _is_empty(statement.value):
                    found |= {t.id for t in statement.targets if isinstance(t, ast.Name)}
        live = self._work.finding.namespace
        full = {name for name in found if type(live.get(name)) in (list, dict, deque) and len(live[name])}
        later = [cell for cell in kept[1:] if cell not in roots]  # kept[0] is the failed one
        by_others = {name for c in later for name in self._changes(effects[c], c, effects)}
        return {name for name in full - by_others if not any(_fills(n, name) for c in roots for n in effects[c].nodes)}

    def _changes(self, own: Effects, cell: Cell, effects: dict[Cell, Effects]) -> set[str]:
        """Names whose objects the cell changes, itself or through the functions that it calls."""
        found = set(own.changes)
        for function in called(self._work, cell, effects):
            found |= registries.changed_by(function)
        return {name for name in found if not self._is_plain_function(name)}

    def _is_plain_function(self, name: str) -> bool:
        if any(name in self._work.effects(cell).definitions for cell in self._work.binders(name)):
            return True
        live = self._work.finding.namespace.get(name, builtins.__dict__.get(name))
        return type(live).__name__ in ("function", "module", "type", "builtin_function_or_method")

    def _rewritten(self, cell: Cell, own: Effects, after: Mapping[Cell, str]) -> set[str]:
        """Functions and classes whose text is another now, and those of the cell that build on them."""
        if cell not in after:
            return set()
        before = self._work.effects(cell).definitions
        found = {name for name, node in own.definitions.items() if name not in before or not same(before[name], node)}
        found |= {n for name in found for n in self._registering_bases(own.definitions[name])}
        return found | self._rewritten_classes(own, found)

    def _registering_bases(self, node: ast.AST) -> set[str]:
        """The bases of a class that hear of each class that inherits from them, and may keep it."""
        names = _bases(node) if isinstance(node, ast.ClassDef) else set()
        made = ((name, self._work.effects(cell).definitions.get(name)) for name in names for cell in self._work.order)
        return {name for name, base in made if base is not None and registries.hears_of_classes(base)}

    def _rewritten_classes(self, own: Effects, changed: set[str]) -> set[str]:
        """Classes that inherit from changed ones, functions and lambdas that call them."""
        found: set[str] = set()
        for _ in own.definitions:
            grown = {n for n, node in own.definitions.items() if free(node) & (changed | found)}
            grown |= {
                n for n, node in own.definitions.items() if isinstance(node, ast.ClassDef) and _bases(node) & changed
            }
            if grown <= found:
                break
            found |= grown
        return found

    def _needs(self, cell: Cell, order: list[Cell], effects: dict[Cell, Effects]) -> set[str]:
        """Global names that running the cell reads, through the functions it calls as well."""
        found = set(effects[cell].reads)
        definitions: dict[str, ast.AST] = {}
        for earlier in order:
            definitions.update(effects[earlier].definitions)
            if earlier is cell:
                break
        todo = [name for name in found if name in definitions]
        seen: set[str] = set()
        while todo:
            name = todo.pop()
            if name in seen:
                continue
            seen.add(name)
            more = free(definitions[name])
            found |= more
            todo += [n for n in more if n in definitions]
        return found

    def _makers(
        self, order: list[Cell], kept: list[Cell], roots: list[Cell], effects: dict[Cell, Effects]
    ) -> list[Cell]:
        """Cells that make anew what the kept ones would otherwise change a second time."""
        failed = order[-1]
        for cell in kept:
            for name in registries.filled_once(called(self._work, cell, effects), effects[cell], self._work):
                made = next((c for c in reversed(order) if name in effects[c].binds), None)
                if made is not None and made not in roots:
                    fill = [c for c in order if name in self._changes(effects[c], c, effects) and c is not failed]
                    return [made, *(c for c in fill if c not in roots and c is not made)]
            if cell is failed:
                continue
            consumed = [(name, "read") for name in effects[cell].reads if self._is_used_up(name)]
            for name, method in [*((n, m) for n, m, _ in effects[cell].unsafe), *consumed]:
                if method in ("step", "backward") or name in effects[cell].binds:
                    continue
                maker = next((c for c in reversed(order[: order.index(cell)]) if name in effects[c].binds), None)
                if maker is not None and maker not in roots and maker not in kept:
                    return [maker]
        return []

    def _is_used_up(self, name: str) -> bool:
        """Is this an open file or an iterator, which a second run would find at its end?"""
        kind = type(self._work.finding.namespace.get(name))
        return kind is GeneratorType or any(base in (io.IOBase, io.BytesIO, io.StringIO) for base in kind.__mro__)

    def _described(
        self, kept: list[Cell], effects: dict[Cell, Effects], after: Mapping[Cell, str], failed: Cell
    ) -> Plan:
        plan = Plan(cells=kept)
        plan.rerun = tuple(Rerun(cell.number, cell.cell_id, after.get(cell, cell.raw)) for cell in kept)
        for cell in kept:
            if cell is failed:
                continue
            training = trains(self._work, cell, effects)
            # Rebuilt from a history without times: training in a loop may have been long.
            long = cell.duration is None and training and seconds(self._work, cell, effects) > 0
            plan.seconds += SHORT if long else cell.duration or 0.0
            plan.trains = plan.trains or training
            if (cell.duration or 0.0) >= 10:
                plan.notes.append(
                    say("re-runs In [{cell}] ({seconds})", cell=cell.number, seconds=_spoken(cell.duration or 0.0))
                )
            plan.notes += dangers(cell, kept, effects)
        return plan


def _made_of(trees: Iterable[ast.Module]) -> dict[str, set[str]]:
    """By name, the names from which a call made it: a recorder of a model's outputs changes as the model is called."""
    found: dict[str, set[str]] = {}
    for tree in trees:
        for statement in tree.body:
            if isinstance(statement, ast.Assign) and isinstance(statement.value, ast.Call):
                given = read([*statement.value.args, *statement.value.keywords])
                for name in bound([statement]):
                    found.setdefault(name, set()).update(given - {name})
    return found


def _is_empty(value: ast.expr) -> bool:
    """``[]``, ``{}``, ``list()``, ``defaultdict(list)``, ``deque(maxlen=9)``."""
    match value:
        case ast.List(elts=[]) | ast.Dict(keys=[]):
            return True
        case ast.Call(func=function):
            return last_name(function) in ("list", "dict", "deque", "defaultdict", "OrderedDict")
    return False


def _fills(node: ast.AST, name: str) -> bool:
    """``xs.append(x)``, ``d[k] = v``, ``xs += more``: not what a function does that is given it."""
    match node:
        case ast.Call(func=ast.Attribute(value=ast.Name(id=held), attr=method)):
            return held == name and method in ("append", "extend", "insert", "update", "add", "setdefault")
        case ast.Subscript(value=ast.Name(id=held), ctx=ast.Store()) | ast.AugAssign(target=ast.Name(id=held)):
            return held == name
    return False


def _calls(node: ast.AST) -> set[str]:
    return {node.func.id} if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) else set()


def _sets_default(node: ast.AST) -> bool:
    """``torch.set_default_device(device)``: cells that run again would see the last one."""
    return isinstance(node, ast.Call) and last_name(node.func) in ("set_default_device", "set_default_tensor_type")


def wrapped_optimizer(owner: object) -> Any:
    """The optimizer that an object of another kind steps for its user: of Lookahead, SAM and their like."""
    if owner is None or placement.is_optimizer(owner) or placement.is_module(owner):
        return None
    return next((held for held in list(attributes(owner).values()) if placement.is_optimizer(held)), None)


def _is_stepped(live: object, optimizer: object) -> bool:
    """Is this a module whose parameters the optimizer changes?"""
    if not placement.is_module(live):
        return False
    groups = attributes(optimizer).get("param_groups")
    held = {id(p) for group in groups for p in group.get("params", ())} if type(groups) is list else set()
    return any(id(found.value) in held for found in placement.walk(live))


def _bases(node: ast.ClassDef) -> set[str]:
    return {n.id for base in node.bases for n in ast.walk(base) if isinstance(n, ast.Name)}


def _spoken(seconds: float) -> str:
    return f"{seconds / 60:.0f} min" if seconds >= 90 else f"{seconds:.0f} s"
