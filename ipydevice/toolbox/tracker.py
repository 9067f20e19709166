"""Where named tensors have been."""

from __future__ import annotations

import itertools
import sys
import threading
import time
from collections import OrderedDict, deque
from dataclasses import dataclass, replace
from typing import Any

from ipydevice import placement
from ipydevice.diagnosis import Place
from ipydevice.show import quantities
from ipydevice.toolbox.callers import place_of

_INSIDE = 50  # tensors noted of one container or module


@dataclass(frozen=True, slots=True)
class Sighting:
    """A tensor as it was, at one line, once or several times in a row."""

    name: str
    device: str
    shape: tuple[int, ...] | None
    dtype: str | None
    place: Place
    seconds: float  # time.time() of the latest
    count: int = 1

    def __str__(self) -> str:
        times = f" ×{self.count:,}" if self.count > 1 else ""
        what = quantities.typed_shape(self.dtype, self.shape)
        clock = time.strftime("%H:%M:%S", time.localtime(self.seconds))
        return f"{clock}  {self.name}  {self.device}  {what}  {self.place}{times}"


class TensorTracker:
    """Notes where tensors are, by the names you give them: device, shape, dtype, line and time.

    ``tracker.track(x=x, batch=batch)`` at several places, then ``print(tracker)`` or ``tracker.history("x")``.
    Notes are strings and numbers, so no tensor is kept alive; the oldest go first. Threads may share one.

    Args:
        limit: notes for each name, and at most a thousand names.

    Raises:
        ValueError: `limit` is less than 1.
    """

    MOST_NAMES = 1_000

    def __init__(self, limit: int = 100) -> None:
        if type(limit) is not int or limit < 1:
            raise ValueError(f"TensorTracker(limit) takes a number of notes from 1 on, but got {limit!r}")
        self.limit = limit
        self._notes: OrderedDict[str, deque[Sighting]] = OrderedDict()
        self._lock = threading.Lock()

    def track(self, **tensors: Any) -> None:
        """Note where these are now: tensors, or containers and modules, whose tensors are noted by their paths.

        Raises:
            TypeError: there is no tensor in one of them.
        """
        place, now = place_of(sys._getframe(1)), time.time()
        for name, value in tensors.items():
            found = [(f"{name}{one.path}", one.value) for one in placement.walk(value, limit=_INSIDE)]
            if placement.is_array(value):
                found = [(name, value)]
            if not found:
                raise TypeError(f"{name} is of type {type(value).__name__}, with no tensor in it")
            for path, tensor in found:
                facts = placement.device_of(tensor), placement.shape_of(tensor), placement.dtype_of(tensor)
                self._note(Sighting(path, *facts, place, now))

    def _note(self, seen: Sighting) -> None:
        with self._lock:
            notes = self._notes.setdefault(seen.name, deque(maxlen=self.limit))
            last = notes[-1] if notes else None
            if last is not None and replace(last, seconds=seen.seconds, count=1) == seen:
                notes[-1] = replace(seen, count=last.count + 1)
            else:
                notes.append(seen)
            self._notes.move_to_end(seen.name)
            while len(self._notes) > self.MOST_NAMES:
                self._notes.popitem(last=False)

    @property
    def names(self) -> tuple[str, ...]:
        """The names noted, the one noted last at the end."""
        return tuple(self._notes)

    def history(self, name: str) -> tuple[Sighting, ...]:
        """Where `name` has been, the oldest first.

        Raises:
            KeyError: it was never tracked.
        """
        if name not in self._notes:
            raise KeyError(f"{name!r} was never tracked; tracked are {', '.join(self._notes) or 'none'}")
        return tuple(self._notes[name])

    def moves(self, name: str) -> tuple[tuple[Sighting, Sighting], ...]:
        """The pairs of following notes between which `name` has changed its device."""
        notes = self.history(name)
        return tuple((a, b) for a, b in itertools.pairwise(notes) if a.device != b.device)

    def __str__(self) -> str:
        return "\n".join(str(seen) for notes in self._notes.values() for seen in notes) or "nothing tracked yet"
