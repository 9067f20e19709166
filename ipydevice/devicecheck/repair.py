"""A call that failed because its operands were on different devices: say why, move them, try again."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from types import FrameType
from typing import Any

import torch

from ipydevice import messages, placement, postmortem
from ipydevice.cells import CellHistory
from ipydevice.devicecheck import callsite, guarded, operands, watched
from ipydevice.devicecheck.ledger import Entry, Ledger
from ipydevice.devicecheck.mode import NOT_MENDED, Numbers
from ipydevice.devicecheck.operands import Target
from ipydevice.diagnose.frames import Sources
from ipydevice.diagnose.source import Source
from ipydevice.language import say

HOST = "cpu"
MOST_IN_ONE_CALL = 8  # mistakes that are told apart


@dataclass
class _Call:
    """A call of torch that has failed, where it stands in the user's code, and how to make it again."""

    caller: FrameType | None
    frames: list[FrameType]  # the user's own, the innermost first
    func: Any
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    numbers: Numbers | None

    def __post_init__(self) -> None:
        self.name: str = getattr(self.func, "__name__", "")
        self.tensors = list(operands.tensors_of([self.args, self.kwargs], depth=6))
        self.written = operands.written_by(self.func, self.args, self.kwargs)
        self.is_foreach = self.name.startswith("_foreach")
        self.has_generator = self.kwargs.get("generator") is not None

    def again(self, moved: operands.Moved) -> Any:
        """The result with these arguments, drawn from the same random numbers."""
        if self.numbers is not None:
            self.numbers.restore()
        result = self.func(*moved.args, **moved.kwargs)
        moved.write_back(self.func)
        return result


class Repairer:
    """Repairs the calls of one check, and keeps the book about them."""

    def __init__(
        self,
        history: CellHistory,
        namespace: dict[str, Any] | None,
        *,
        base: callsite.Base | None = None,
        stops: bool = False,
    ) -> None:
        self.ledger = Ledger()
        self.notes: list[str] = []
        self.stopped = False
        self._base = base
        self._stops = stops  # at the first mistake
        self._history = history
        self._namespace = namespace
        self._sources = Sources(history)
        self._texts: list[Source] = []  # of all cells, so that each diagnosis meets them parsed
        self._never = watched.never_retried()
        self._generators: dict[tuple[int, str], tuple[torch.Generator, torch.Generator]] = {}

    def mend(
        self,
        error: Exception,
        caller: FrameType | None,
        func: Any,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        numbers: Numbers | None,
    ) -> Any:
        """The result of the call with its operands on one device, or NOT_MENDED where `error` has to stand."""
        mismatch = None if func in self._never else messages.recognise(error)
        if mismatch is None or mismatch.kind != "placement":
            return NOT_MENDED
        frames = callsite.user_frames(caller, self._base)
        try:
            return self._mend(error, _Call(caller, frames, func, args, kwargs, numbers))
        finally:
            callsite.forget_locals(caller)

    def _mend(self, error: Exception, call: _Call) -> Any:
        if not call.frames or guarded.caught_by_user(call.frames, error, self._sources, self._base):
            return NOT_MENDED
        entries, all_known = self.ledger.known(call.frames, call.tensors)
        if not self._texts:
            self._texts = self._sources.all_cells()
        if not entries:
            entry = self._examine(error, call)
            if entry is None:
                return NOT_MENDED
            entries = [entry]
        result = NOT_MENDED
        if self._stops:
            self.stopped = True
        else:
            try:
                if not all_known:
                    result = self._one_by_one(error, entries, call)
                if result is NOT_MENDED:
                    result = self._retry(error, entries, call)
            finally:
                self.ledger.settle(call.frames, call.tensors, entries)
                for entry in entries:
                    entry.met(call.frames)
        if result is NOT_MENDED:
            for entry in entries:
                entry.repaired = False
        return result

    def note_fatal(self, error: BaseException) -> None:
        """What has ended the code is a mistake too, where it is one: raised in C++ backward, or by Python code."""
        found = messages.find(error)
        if found is None or any(not entry.repaired for entry in self.ledger.entries):
            return
        frames = callsite.frames_of(error)
        entry = self._diagnose(found[0], [])
        if entry is not None:
            entry.repaired = False
            entry.met(frames)

    def _examine(
        self, error: Exception, call: _Call, known: Sequence[Entry] = (), home: str | None = None
    ) -> Entry | None:
        """What the ordinary diagnosis says of the error, which still stands in the middle of the user's code."""
        kept = error.__traceback__
        try:
            error.__traceback__ = callsite.traceback_of(error, call.caller)
            virtual = sys.modules.get("ipydevice.virtual")
            if virtual is not None:
                virtual.trim_traceback(error)
            return self._diagnose(error, call.tensors, known, home)
        finally:
            error.__traceback__ = kept

    def _diagnose(
        self,
        error: BaseException,
        tensors: list[torch.Tensor],
        known: Sequence[Entry] = (),
        home: str | None = None,
    ) -> Entry | None:
        try:
            settled = self.ledger.settled(known) if known else None
            started = postmortem.begin(error, self._history, self._namespace, settled)
            if started is None:
                return None
            finding = started.finding
            if known and (finding is None or finding.stray is None or finding.stray.device == home):
                return None
            return self.ledger.add(started.finish(), finding, tensors)
        except Exception as ours:  # the user's error comes first
            if os.environ.get("IPYDEVICE_DEBUG") == "1":
                raise
            self.notes.append(
                say(
                    "ipydevice failed while diagnosing an error ({error}); it was raised as it was",
                    error=type(ours).__name__,
                )
            )
            return None

    def _one_by_one(self, error: Exception, entries: list[Entry], call: _Call) -> Any:
        """Move the strays of these entries alone; where that is not enough the call has a mistake more."""
        home = placement.device_of(call.written[0]) if call.written else entries[0].target
        if home is None or entries[0].host_required or call.is_foreach or call.has_generator:
            return NOT_MENDED
        strays: list[torch.Tensor] = []
        for _ in range(MOST_IN_ONE_CALL):
            before, strays = strays, self.ledger.strays_among(call.tensors, entries)
            if len(strays) == len(before) or any(one is each for one in strays for each in call.written):
                return NOT_MENDED  # what was found last takes part by way of something computed from it
            moved = operands.move(call.args, call.kwargs, _these(strays, home))
            try:
                result = call.again(moved)
            except Exception as again:  # noqa: BLE001  (the whole call is tried after it, and raises)
                _unchain(again, error)
                mismatch = messages.recognise(again)
                if mismatch is None or mismatch.kind != "placement":
                    return NOT_MENDED
                more = self._examine(again, call, entries, home)
                if more is None or more in entries:
                    return NOT_MENDED
                entries.append(more)
                continue
            _tell(_copied(home), entries)
            return result
        return NOT_MENDED

    def _retry(self, error: Exception, entries: list[Entry], call: _Call) -> Any:
        entry = entries[0]
        if call.has_generator and entry.diagnosis.family == "generator":
            twin = self._twin(call.kwargs["generator"], entry, call.kwargs, call.tensors)
            entry.repair = say(
                "a generator for {device} with the same seed was used", device=entry.target or say("the right device")
            )
            return call.func(*call.args, **{**call.kwargs, "generator": twin})
        for target, words in _ways(entry, call):
            moved = operands.move(call.args, call.kwargs, target)
            if not moved.copies:
                continue
            try:
                result = call.again(moved)
            except Exception as again:
                _unchain(again, error)
                if messages.recognise(again) is None:  # a mistake of another kind, which the first one has hidden
                    _tell(words, entries)
                    raise
                continue
            _tell(words, entries)
            return result
        return NOT_MENDED

    def _twin(
        self, generator: torch.Generator, entry: Entry, kwargs: dict[str, Any], tensors: list[torch.Tensor]
    ) -> torch.Generator:
        """A generator on the device where the numbers are wanted; the same one each time, so that they go on."""
        where = placement.device_of(tensors[0]) if tensors else str(kwargs.get("device") or torch.get_default_device())
        entry.target = entry.target or where
        key = id(generator), where
        if key not in self._generators:
            self._generators[key] = generator, torch.Generator(device=where).manual_seed(generator.initial_seed())
        return self._generators[key][1]


def _ways(entry: Entry, call: _Call) -> Iterator[tuple[Target, str]]:
    """What to move where, the best first."""
    if call.is_foreach:
        yield operands.by_position(call.args), say("each position of the lists was brought together")
        return
    tensors = call.tensors
    if entry.host_required:
        away = [tensor for tensor in tensors if placement.device_of(tensor) != HOST]
        away.sort(key=lambda tensor: placement.device_of(tensor) != entry.stray_device)
        for tensor in [*away[1:], *away[:1]] if call.name == "_pack_padded_sequence" else away:
            yield _these([tensor], HOST), _copied(HOST)
        return
    if call.written:
        home = placement.device_of(call.written[0])
        words = say("what meets it was copied to {home} for each call, so that the write is kept", home=home)
        yield _all_but(call.written, home), words
        return
    devices = dict.fromkeys(placement.device_of(tensor) for tensor in tensors)
    wanted = entry.target if entry.target in devices else None
    others = [device for device in devices if device not in (HOST, "meta", wanted)]
    for device in [*([wanted] if wanted else []), *others, *([HOST] if wanted != HOST else [])]:
        yield _all_but([], device), _copied(device)


_STRAY = "<stray>"


def _copied(device: str) -> str:
    return say("{stray} was copied to {device} for each call", stray=_STRAY, device=device)


def _tell(words: str, entries: list[Entry]) -> None:
    """Say of each mistake how it was repaired; of the first time only."""
    for entry in entries:
        culprit = entry.diagnosis.culprit
        stray = culprit.expression if culprit is not None else say("the stray")
        entry.repair = entry.repair or words.replace(_STRAY, stray)


def _unchain(again: BaseException, error: BaseException) -> None:
    """Without us the second error would not have been raised while the first was handled."""
    link: BaseException | None = again
    while link is not None:
        if link.__context__ is error:
            link.__context__ = None
        link = link.__context__


def _these(moved: list[torch.Tensor], device: str) -> Target:
    return lambda each: device if any(each is other for other in moved) else None


def _all_but(kept: list[torch.Tensor], device: str) -> Target:
    return lambda each: None if any(each is other for other in kept) else device
