"""From an exception to a `Finding`: frames, what met, which of it is stray, where it came from, why."""

from __future__ import annotations

import ast
from dataclasses import replace
from types import TracebackType
from typing import Any

from ipydevice import placement
from ipydevice.cells import CellHistory
from ipydevice.diagnose import climb, culprit, frames, holders, special
from ipydevice.diagnose.causes import Facts, classify
from ipydevice.diagnose.causes.passed import discarded_move
from ipydevice.diagnose.culprit import Choice, Settled
from ipydevice.diagnose.describe import describe
from ipydevice.diagnose.finding import MOVED_AS_A_WHOLE, Finding, Operand, Site, Step, Stray
from ipydevice.diagnose.frames import Frame, Sources
from ipydevice.diagnose.holders import Holder
from ipydevice.diagnose.infer import call_name, moved_to, with_index
from ipydevice.diagnose.literals import only_place
from ipydevice.diagnose.locate import store_statement
from ipydevice.diagnose.meeting import Candidate
from ipydevice.diagnose.origin import Tracer
from ipydevice.diagnose.weigh import holder_chain
from ipydevice.messages import Mismatch

__all__ = ["Analysis", "describe"]

HOST = "cpu"


class Analysis:
    """One error under examination; holds frames and tensors, so drop it when done."""

    def __init__(
        self,
        tb: TracebackType | None,
        mismatch: Mismatch,
        history: CellHistory,
        namespace: dict[str, Any],
        settled: Settled | None = None,
    ) -> None:
        self.mismatch = mismatch
        self._settled = settled
        self.history = history
        self.namespace = namespace
        self.sources = Sources(history)
        self.frames: list[Frame] = frames.collect(tb, self.sources)
        self.tracer = Tracer(self.sources, self.frames, namespace)
        self.choice = Choice()

    def find_culprit(self) -> None:
        """Which thing is on the wrong device; the dearest part, needed for the headline."""
        self.choice = special.choose(self.frames, self.mismatch, self.tracer) or culprit.choose(
            self.frames, self.mismatch, self.tracer, self._settled
        )

    def finding(self) -> Finding | None:
        """Everything known, for causes, fixes and description; None where no frame of the user's is left."""
        users = [frame for frame in self.frames if frame.is_user]
        if not users:
            return None
        first, last = users[0], users[-1]
        assert first.source is not None
        assert last.source is not None
        node = last.node if last.node is not None else last.source.tree
        found = Finding(
            mismatch=self.mismatch,
            failed=Site(last.source, store_statement(last.source, node), last.frame),
            history=self.history,
            namespace=self.namespace,
            start=Site(first.source, first.source.tree, first.frame),
            operands=[_operand(candidate) for candidate in self.choice.met],
            evidence=list(dict.fromkeys(self.choice.evidence))[:3],
            host_required=self.choice.host_required,
        )
        choice = self.choice
        if choice.stray is None:
            if self.mismatch.kind == "availability":
                found.cause, found.confidence = "no_accelerator", "certain"
            return found
        owners = holder_chain(choice.stray, self.tracer)
        found.stray = self._stray(choice.stray, owners)
        found.taken = _operand(choice.taken) if choice.taken is not None else None
        found.other = _operand(_whole(choice.other)) if choice.other is not None else None
        found.target = self._target()
        found.chain = choice.chain
        found.helper = next((step for step in reversed(choice.chain) if climb.hands_on(step)), None)
        found.owner_chain = self._owner_chain(owners)
        found.told = self._last_move(found.stray)
        facts = Facts(found, self.tracer, owners)
        found.cause = classify(facts)
        if found.cause == "to_result_discarded":
            found.told = discarded_move(found, self.tracer) or found.told
        own = facts.own_move() if found.cause in MOVED_AS_A_WHOLE else None
        if own is not None and (own[1] is None or found.cause == "hardcoded_device"):
            found.told = own[0]  # what it leaves out, or moves elsewhere, is the mistake
        if found.cause == "hardcoded_device":
            found.told = only_place(found.stray.device, found.target or "", self.tracer) or found.told
        certain = choice.margin >= 2.0 and not self._leaves_open(choice)
        found.confidence = "certain" if certain else "likely" if choice.margin >= 0.5 else "guess"
        between_cards = "cpu" not in (found.stray.device, found.target)
        if (self.mismatch.confidence == "reader" or between_cards) and found.confidence == "certain":
            found.confidence = "likely"
        return found

    def _leaves_open(self, choice: Choice) -> bool:
        """Whether more than one line may be the mistake, however sure the stray is."""
        taken, stray = choice.taken, choice.stray
        assert stray is not None
        if choice.host_required and taken is not None and taken.frame is not stray.frame:
            return True  # the caller hands on what the function itself takes to the host, or does not
        last = choice.chain[-1] if choice.chain else None
        if last is None:
            return bool(stray.member) and stray.via == "item"  # who filled the list is not known
        if isinstance(last.value, (ast.ListComp, ast.GeneratorExp, ast.DictComp)):
            return bool(stray.member)  # which of many calls made it is not known
        if last.how not in ("assignment", "attribute") or not isinstance(last.value, ast.Call):
            return False
        name = ast.unparse(last.value.func).rpartition(".")[2]
        if name in ("deepcopy", "copy"):
            return True  # the copy, or what was copied before it was moved
        # Put together of parts that are not known: torch.cat(batch.action).
        joins = ("cat", "stack", "concat", "vstack", "hstack")
        return call_name(last.value, self.tracer.scope(last.site)) in joins

    def _last_move(self, stray: Stray) -> Site | None:
        """For a module: the call in a cell that moved it to where it is now."""
        if stray.kind != "module":
            return None
        for text in dict.fromkeys((stray.expression, stray.path or stray.expression)):
            site = self.tracer.last_move(text)
            if site is not None and isinstance(site.node, ast.Call):
                to = moved_to(site.node, self.tracer.scope(site))
                return site if to == stray.device else None
        return None

    def _target(self) -> str | None:
        choice = self.choice
        assert choice.stray is not None
        if choice.host_required or self.mismatch.family == "pin":
            return HOST
        if choice.other is not None and choice.other.device is not None:
            return choice.other.device
        left = [name for name in self.mismatch.devices if name != choice.stray.device]
        return with_index(left[0]) if left else None

    def _stray(self, candidate: Candidate, owners: list[Holder]) -> Stray:
        holder = next((h for h in reversed(owners[:-1]) if not holders.is_container(h.value)), None)
        attribute = owners[-1].path.removeprefix(holder.path).removeprefix(".") if holder is not None else ""
        via = candidate.via or (str(owners[-1].via or "") if len(owners) > 1 else "")
        kind = "module" if placement.is_module(candidate.value) else _kind(candidate, via)
        return Stray(
            site=candidate.site,
            member=candidate.member,
            device=candidate.device or "",
            kind=kind,
            value=candidate.value,
            known=candidate.known,
            owner=holder.value if holder is not None else None,
            attribute=attribute,
            via=via,
            path=self._path(candidate),
            role=self.choice.role,
        )

    def _path(self, candidate: Candidate) -> str | None:
        """The same object reached from the workspace."""
        if not candidate.known:
            return None
        chain = self.tracer.held.find(candidate.value)
        return chain[-1].path if chain else None

    def _owner_chain(self, owners: list[Holder]) -> list[Step]:
        """How the object that holds the stray was made."""
        holder = next((h for h in owners[:-1] if not holders.is_container(h.value)), None)
        if holder is None:
            return []
        for name, live in self.namespace.items():
            if live is holder.value and not name.startswith("_"):
                return self.tracer.trace_global(name)
        return []


def _whole(other: Candidate) -> Candidate:
    """``model`` rather than ``model[0].weight``, where all of the model is there."""
    is_state = other.via in ("parameter", "buffer") and placement.is_module(other.root)
    if is_state and holders.wholly_on(other.root, other.device or ""):
        return replace(other, member="", value=other.root, via="module")
    return other


def _kind(candidate: Candidate, via: str) -> str:
    if via in ("parameter", "buffer"):
        return via
    if candidate.known and placement.is_parameter(candidate.value):
        return "parameter"
    if candidate.known and not placement.is_tensor(candidate.value):
        return placement.kind_of(candidate.value) or "object"
    return "tensor"


def _operand(candidate: Candidate) -> Operand:
    return Operand(
        site=candidate.site,
        expression=candidate.expression,
        device=candidate.device,
        value=candidate.value,
        known=candidate.known,
        kind="module" if candidate.via in ("parameter", "buffer", "module") else "tensor",
        role=candidate.role,
    )
