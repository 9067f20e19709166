"""The mistakes met so far: one entry for each, however many calls, lines, layers or iterations it stops."""

from __future__ import annotations

import ast
import weakref
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from types import CodeType, FrameType
from typing import Any

import torch

from ipydevice import placement
from ipydevice.devicecheck import callsite, operands
from ipydevice.diagnose.culprit import Settled
from ipydevice.diagnose.evaluate import MISSING, Scope, value
from ipydevice.diagnose.finding import Finding, Operand, Stray
from ipydevice.diagnose.frames import Sources
from ipydevice.diagnose.meeting import Candidate
from ipydevice.diagnosis import Diagnosis, Place
from ipydevice.report import CheckFinding

# Causes that lie in how an object was built: many objects built by one line are one mistake.
_BY_LINE = frozenset((
    "plain_tensor_attribute", "module_in_plain_container", "module_built_in_forward", "module_added_after_move",
    "optimizer_state", "derived_tensor_in_init", "stale_cache", "dp_replica_state",
))  # fmt: skip


_MOST = 100_000  # tensors looked at in one object


@dataclass(eq=False)
class Entry:
    """One mistake."""

    diagnosis: Diagnosis
    stray_device: str | None
    target: str | None
    host_required: bool
    marks: set[Any] = field(default_factory=set)  # by which other diagnoses of it are known
    count: int = 0
    repaired: bool = True
    repair: str = ""
    lines: dict[tuple[CodeType, int], None] = field(default_factory=dict)  # where it stopped a call
    taken: list[Operand] = field(default_factory=list)  # the stray as it stands on the lines that were diagnosed

    def met(self, frames: list[FrameType]) -> None:
        self.count += 1
        if frames:
            self.lines[frames[0].f_code, frames[0].f_lineno] = None


class Ledger:
    """Finds the entry that a failing call belongs to. Holds tensors, so drop it after the check."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self._absorbed: list[Entry] = []  # met by checks inside, whose objects this one has not seen
        self._by_call: dict[Any, list[Entry]] = {}  # all that a call took to be repaired
        self._by_object: dict[int, Entry] = {}
        self._held: list[Any] = []  # what `_by_object` names, so that no id is used twice
        self._derived: dict[int, tuple[weakref.ref[Any], Entry]] = {}  # what strays have been computed into
        self._made_from: dict[int, Entry] = {}  # tensors out of which the stray of an entry was computed

    def known(self, frames: list[FrameType], tensors: list[torch.Tensor]) -> tuple[list[Entry], bool]:
        """The entries of mistakes that have been met before, and whether these were all of such a call."""
        found = list(dict.fromkeys(filter(None, map(self._of, tensors))))
        listed = self._by_call.get(_call(frames, tensors))
        if listed is not None and all(entry in listed for entry in found):
            return listed, True
        if not found:
            inside = self._inside_stray_module(frames, tensors)
            return ([], False) if inside is None else ([inside], True)
        return found, False

    def settle(self, frames: list[FrameType], tensors: list[torch.Tensor], entries: list[Entry]) -> None:
        """These were all the mistakes of this call."""
        self._by_call[_call(frames, tensors)] = entries

    def strays_among(self, tensors: list[torch.Tensor], entries: list[Entry]) -> list[torch.Tensor]:
        """Those that are the stray of one of the entries, a view of it, or computed from it."""
        shown = [(each.value, entry) for entry in entries for each in entry.taken if each.known]
        return [
            tensor
            for tensor in tensors
            if self._of(tensor) in entries
            or any(placement.same(each, tensor) and _strays(tensor, entry) for each, entry in shown)
        ]

    def settled(self, entries: Sequence[Entry]) -> Settled:
        """Whether what stands on the failing line is the stray of one of the entries."""

        def is_settled(candidate: Candidate) -> bool:
            if candidate.known and self._by_object.get(id(candidate.value)) in entries:
                return True
            return any(_is(each, candidate) for entry in entries for each in entry.taken)

        return is_settled

    def _of(self, tensor: torch.Tensor) -> Entry | None:
        """The mistake that `tensor` is, or was computed from."""
        entry = self._by_object.get(id(tensor))
        if entry is None and id(tensor) in self._derived:
            alive, entry = self._derived[id(tensor)]
            if alive() is not tensor:  # another one under an id that was used before
                return None
        return entry if entry is not None and _strays(tensor, entry) else None

    def trace(self, given: Any, result: Any) -> None:
        """What a call makes out of a stray, and leaves on its device, is the same mistake."""
        for tensor in operands.tensors_of(given, depth=6):
            entry = self._of(tensor)
            if entry is None:
                continue
            for made in operands.tensors_of(result):
                if id(made) not in self._by_object and placement.device_of(made) == entry.stray_device:
                    self._derived[id(made)] = weakref.ref(made), entry
            return

    def _inside_stray_module(self, frames: list[FrameType], tensors: list[torch.Tensor]) -> Entry | None:
        """In a module left behind, what it makes ``device=self.weight.device`` is left behind with it."""
        for frame in frames:
            first = frame.f_code.co_varnames[:1]
            owner = frame.f_locals.get(first[0]) if first == ("self",) else None
            entry = self._by_object.get(id(owner)) if owner is not None else None
            if entry is not None and any(placement.device_of(t) == entry.stray_device for t in tensors):
                return entry
        return None

    def add(self, diagnosis: Diagnosis, finding: Finding | None, tensors: list[torch.Tensor]) -> Entry:
        """The entry of a call that was diagnosed: a new one, or one whose mistake it turns out to be."""
        entry = self._same_mistake(diagnosis, finding, tensors)
        if entry is None:
            stray = finding.stray if finding is not None else None
            entry = Entry(
                replace(diagnosis, placements=(), placements_left=0),
                stray.device if stray is not None else None,
                finding.target if finding is not None else None,
                finding.host_required if finding is not None else False,
                _marks_of_mistake(diagnosis, finding),
            )
            if finding is not None and finding.stray is not None:
                self._held += [finding.stray.owner, _holder(finding.stray)]  # their ids are among the marks
            self.entries.append(entry)
        if finding is not None:
            self._remember(finding, entry)
            self._take(finding, entry, tensors)
        return entry

    def _take(self, finding: Finding, entry: Entry, tensors: list[torch.Tensor]) -> None:
        """Which of the call's tensors it is: what has no name is told by the place among those without one."""
        taken = finding.taken
        if taken is None or taken.site is None:
            return
        entry.taken.append(taken)
        if taken.known:
            return
        named = [each.value for each in finding.operands if each.known and placement.is_tensor(each.value)]
        nameless = [each for each in finding.operands if not each.known and each.device == taken.device]
        left = [
            tensor
            for tensor in tensors
            if _strays(tensor, entry) and not any(placement.same(tensor, value) for value in named)
        ]
        if len(left) == len(nameless):
            for tensor, each in zip(left, nameless, strict=True):
                if each.site is not None and each.site.node is taken.site.node:
                    self._hold(tensor, entry)

    def _same_mistake(self, diagnosis: Diagnosis, finding: Finding | None, tensors: list[torch.Tensor]) -> Entry | None:
        """The mistake that this is once more. What has ended the code comes without tensors of a call."""
        marks = _marks_of_mistake(diagnosis, finding)
        for entry in self.entries:
            if marks & entry.marks:
                entry.marks |= marks
                return entry
        for entry in self._absorbed if tensors else (*self.entries, *self._absorbed):
            if _told_alike(entry.diagnosis, diagnosis):
                return entry
        if finding is None or finding.stray is None:
            return None
        if not tensors and finding.stray.known and placement.is_tensor(finding.stray.value):
            kept = self._of(finding.stray.value)  # a call that was repaired has kept it for `backward`
            if kept is not None:
                return kept
        for tensor in _ingredients(finding):
            parent = self._by_object.get(id(tensor))
            if parent is not None and parent.stray_device == finding.stray.device:
                return parent
        child = self._made_from.get(id(finding.stray.value))
        if child is not None and child.stray_device == finding.stray.device:  # met before what it was made from
            child.diagnosis = replace(diagnosis, placements=(), placements_left=0)
            return child
        return None

    def _remember(self, finding: Finding, entry: Entry) -> None:
        stray = finding.stray
        if stray is None:
            return
        if stray.known:
            self._hold(stray.value, entry)
            if placement.is_module(stray.value):
                for module in torch.nn.Module.modules(stray.value):
                    self._hold(module, entry)
                for found in placement.walk(stray.value, limit=_MOST):
                    if placement.device_of(found.value) == stray.device:
                        self._hold(found.value, entry)
        for tensor in _siblings(finding):
            self._hold(tensor, entry)
        for tensor in _ingredients(finding):
            self._held.append(tensor)
            self._made_from.setdefault(id(tensor), entry)

    def _hold(self, thing: Any, entry: Entry) -> None:
        if placement.is_tensor(thing) or placement.is_module(thing):
            self._held.append(thing)
            self._by_object.setdefault(id(thing), entry)

    def absorb(self, other: Ledger) -> None:
        """Take over what a check inside this one has met."""
        for entry in other.entries:
            mine = next((each for each in self.entries if _same(each, entry)), None)
            if mine is None:
                self.entries.append(entry)
                self._absorbed.append(entry)
                continue
            mine.count += entry.count
            mine.repaired = mine.repaired and entry.repaired
            mine.lines.update(entry.lines)

    def knows_inside(self, thing: Any) -> bool:
        """Whether a stray that has stopped a call is one of the tensors inside `thing`."""
        return any(id(found.value) in self._by_object for found in placement.walk(thing, limit=_MOST))

    def findings(self, sources: Sources) -> tuple[CheckFinding, ...]:
        """All entries as strings: lines in the order met, and what belongs to one line together."""
        found = [
            CheckFinding(entry.diagnosis, tuple(_places(entry, sources)), entry.count, entry.repaired, entry.repair)
            for entry in self.entries
        ]
        first: dict[Any, int] = {}
        for at, one in enumerate(found):
            first.setdefault(one.line, at)
        return tuple(_mended_with(sorted(found, key=lambda one: first[one.line])))


def _strays(tensor: torch.Tensor, entry: Entry) -> bool:
    return placement.device_of(tensor) == entry.stray_device


def _is(operand: Operand, candidate: Candidate) -> bool:
    if operand.known or candidate.known:
        return operand.known and candidate.known and placement.same(operand.value, candidate.value)
    return operand.site is not None and _where(operand.site.node) == _where(candidate.node)


def _where(node: ast.AST) -> tuple[int, int]:
    return getattr(node, "lineno", 0), getattr(node, "col_offset", 0)


def _mended_with(findings: list[CheckFinding]) -> Iterator[CheckFinding]:
    """A fix that mends two mistakes of one call is offered once."""
    offered: dict[Any, int] = {}
    for at, finding in enumerate(findings):
        fixes = finding.diagnosis.fixes
        first = (fixes[0].edits, fixes[0].setup) if fixes else None
        if first in offered:
            yield replace(finding, mended_with=offered[first])
        else:
            offered |= {first: at} if first is not None else {}
            yield finding


def _same(one: Entry, other: Entry) -> bool:
    return bool(one.marks & other.marks) or _told_alike(one.diagnosis, other.diagnosis)


def _told_alike(one: Diagnosis, other: Diagnosis) -> bool:
    return one.failed == other.failed and one.headline == other.headline


def _places(entry: Entry, sources: Sources) -> list[Place]:
    found = [callsite.place_of(code, line, sources) for code, line in entry.lines]
    return list(dict.fromkeys(found))


def _call(frames: list[FrameType], tensors: list[torch.Tensor]) -> Any:
    """The same call with operands on the same devices; parameters are told apart, the rest comes and goes."""
    return callsite.key_of(frames), tuple(
        (placement.device_of(tensor), id(tensor) if placement.is_parameter(tensor) else None) for tensor in tensors
    )


def _marks_of_mistake(diagnosis: Diagnosis, finding: Finding | None) -> set[Any]:
    """Two diagnoses of one mistake have one of these in common."""
    marks: set[Any] = set()
    stray = finding.stray if finding is not None else None
    if stray is not None and stray.via in ("parameter", "buffer") and placement.is_module(stray.owner):
        marks.add((diagnosis.cause, id(stray.owner)))  # one `.to()` moves all that a module has registered
    origin = diagnosis.origin
    if origin is not None and diagnosis.culprit is not None:
        where = (diagnosis.cause, origin.cell, origin.file, origin.line)
        by_line = diagnosis.cause in _BY_LINE
        marks.add(where if by_line else (*where, diagnosis.culprit.expression, diagnosis.culprit.device))
        holder = _holder(stray)
        if holder is not None:
            marks.add((*where, id(holder)))  # batch.x and batch.y, of a batch that one line has made
    return marks


def _holder(stray: Stray | None) -> Any:
    """The object of the user's whose attribute the stray is: ``batch`` of ``batch.x``."""
    if stray is None or stray.member or stray.site.frame is None or not isinstance(stray.site.node, ast.Attribute):
        return None
    if isinstance(stray.site.node.value, ast.Name) and stray.site.node.value.id == "self":
        return None  # state of an object, which each has a line of its own to mend
    live = value(stray.site.node.value, Scope.of_frame(stray.site.frame))
    return None if live is MISSING or placement.is_module(live) or placement.is_tensor(live) else live


def _siblings(finding: Finding) -> Iterable[Any]:
    """In a batch that nobody has moved the other members are left behind by the same mistake."""
    stray = finding.stray
    assert stray is not None
    node = stray.site.node
    if not stray.member and isinstance(node, ast.Subscript):
        node = node.value
    elif not stray.member.startswith("["):
        return
    if stray.site.frame is None or not isinstance(node, ast.expr):
        return
    holder = value(node, Scope.of_frame(stray.site.frame))
    if type(holder) in (dict, list, tuple):
        yield from (tensor for tensor in operands.tensors_of(holder) if placement.device_of(tensor) == stray.device)


def _ingredients(finding: Finding) -> Iterable[Any]:
    """Live tensors that the stray was computed from, by the expressions on its way: `labels` of `labels > 0`."""
    assert finding.stray is not None
    for step in finding.chain:
        if step.value is None or step.site.frame is None or isinstance(step.value, ast.Name):
            continue
        scope = Scope.of_frame(step.site.frame)
        for node in ast.walk(step.value):
            if isinstance(node, ast.Name):
                live = value(node, scope)
                if live is not MISSING and placement.is_tensor(live) and live is not finding.stray.value:
                    yield live
