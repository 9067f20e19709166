"""A call that failed because its operands were on different devices: say why, move them, try again."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
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

HOST = "cpu"


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
            return self._mend(error, caller, frames, func, args, kwargs, numbers)
        finally:
            callsite.forget_locals(caller)

    def _mend(
        self,
        error: Exception,
        caller: FrameType | None,
        frames: list[FrameType],
        func: Any,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        numbers: Numbers | None,
    ) -> Any:
        if not frames or guarded.caught_by_user(frames, error, self._sources, self._base):
            return NOT_MENDED
        tensors = list(operands.tensors_of([args, kwargs], depth=6))
        entry = self.ledger.known(frames, tensors) or self._examine(error, caller, frames, tensors)
        if entry is None:
            return NOT_MENDED
        entry.met(frames)
        if self._stops:
            self.stopped, entry.repaired = True, False
            return NOT_MENDED
        result = self._retry(error, entry, func, args, kwargs, tensors, numbers)
        if result is NOT_MENDED:
            entry.repaired = False
        return result

    def note_fatal(self, error: BaseException) -> None:
        """What has ended the code is a mistake too, where it is one: raised in C++ backward, or by Python code."""
        found = messages.find(error)
        if found is None or any(not entry.repaired for entry in self.ledger.entries):
            return
        frames = callsite.frames_of(error)
        entry = self._diagnose(found[0], frames, [])
        if entry is not None:
            entry.repaired = False
            entry.met(frames)

    def _examine(
        self, error: Exception, caller: FrameType | None, frames: list[FrameType], tensors: list[torch.Tensor]
    ) -> Entry | None:
        """What the ordinary diagnosis says of the error, which still stands in the middle of the user's code."""
        kept = error.__traceback__
        try:
            error.__traceback__ = callsite.traceback_of(error, caller)
            virtual = sys.modules.get("ipydevice.virtual")
            if virtual is not None:
                virtual.trim_traceback(error)
            return self._diagnose(error, frames, tensors)
        finally:
            error.__traceback__ = kept

    def _diagnose(self, error: BaseException, frames: list[FrameType], tensors: list[torch.Tensor]) -> Entry | None:
        try:
            started = postmortem.begin(error, self._history, self._namespace)
            if started is None:
                return None
            finding = started.finding
            return self.ledger.add(started.finish(), finding, frames, tensors)
        except Exception as ours:  # the user's error comes first
            if os.environ.get("IPYDEVICE_DEBUG") == "1":
                raise
            self.notes.append(
                f"ipydevice failed while diagnosing an error ({type(ours).__name__}); it was raised as it was"
            )
            return None

    def _retry(
        self,
        error: Exception,
        entry: Entry,
        func: Any,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        tensors: list[torch.Tensor],
        numbers: Numbers | None,
    ) -> Any:
        if kwargs.get("generator") is not None and entry.diagnosis.family == "generator":
            kwargs = {**kwargs, "generator": self._twin(kwargs["generator"], entry, kwargs, tensors)}
            entry.repair = f"a generator for {entry.target or 'the right device'} with the same seed was used"
            return func(*args, **kwargs)
        for target, words in _ways(entry, func, args, kwargs, tensors):
            moved = operands.move(args, kwargs, target)
            if not moved.copies:
                continue
            if numbers is not None:
                numbers.restore()
            try:
                result = func(*moved.args, **moved.kwargs)
            except Exception as again:
                _unchain(again, error)
                if messages.recognise(again) is None:  # a mistake of another kind, which the first one has hidden
                    entry.repair = entry.repair or words
                    raise
                continue
            moved.write_back(func)
            entry.repair = entry.repair or words
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


def _ways(
    entry: Entry, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], tensors: list[torch.Tensor]
) -> Iterator[tuple[Target, str]]:
    """What to move where, the best first."""
    name = getattr(func, "__name__", "")
    stray = entry.diagnosis.culprit.expression if entry.diagnosis.culprit is not None else "the stray"
    if name.startswith("_foreach"):
        yield operands.by_position(args), "each position of the lists was brought together"
        return
    if entry.host_required:
        away = [tensor for tensor in tensors if placement.device_of(tensor) != HOST]
        away.sort(key=lambda tensor: placement.device_of(tensor) != entry.stray_device)
        for tensor in [*away[1:], *away[:1]] if name == "_pack_padded_sequence" else away:
            yield _only(tensor), f"{stray} was copied to cpu for each call"
        return
    written = operands.written_by(func, args, kwargs)
    if written:
        home = placement.device_of(written[0])
        yield _all_but(written, home), f"what meets it was copied to {home} for each call, so that the write is kept"
        return
    devices = dict.fromkeys(placement.device_of(tensor) for tensor in tensors)
    wanted = entry.target if entry.target in devices else None
    others = [device for device in devices if device not in (HOST, "meta", wanted)]
    for device in [*([wanted] if wanted else []), *others, *([HOST] if wanted != HOST else [])]:
        yield _all_but([], device), f"{stray} was copied to {device} for each call"


def _unchain(again: BaseException, error: BaseException) -> None:
    """Without us the second error would not have been raised while the first was handled."""
    link: BaseException | None = again
    while link is not None:
        if link.__context__ is error:
            link.__context__ = None
        link = link.__context__


def _only(tensor: torch.Tensor) -> Target:
    return lambda each: HOST if each is tensor else None


def _all_but(kept: list[torch.Tensor], device: str) -> Target:
    return lambda each: None if any(each is other for other in kept) else device
