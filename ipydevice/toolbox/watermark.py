"""A word before a card is full."""

from __future__ import annotations

import sys
import warnings
from dataclasses import dataclass
from types import FrameType, TracebackType
from typing import Any

import torch

from ipydevice.devicecheck import callsite
from ipydevice.show import quantities
from ipydevice.toolbox import accelerators
from ipydevice.toolbox.callers import place_of


class MemoryWatermarkWarning(UserWarning):
    """A device holds more than the mark."""


@dataclass(frozen=True, slots=True)
class Crossing:
    """When a device first held more than the mark."""

    device: str
    allocated: int  # bytes
    total: int  # bytes of the card
    module: str  # the class of the module that had just run; "" where it was seen only at the end
    place: str  # the user's line

    def __str__(self) -> str:
        after = f" after {self.module}" if self.module else ""
        where = f", {self.place}" if self.place else ""
        return (
            f"{self.device} holds {quantities.size(self.allocated)} of {quantities.size(self.total)} "
            f"({self.allocated / self.total:.0%}){after}{where}; `%devices --sort bytes` shows what holds it"
        )


class memory_watermark:  # noqa: N801  (used like a function: `with memory_watermark():`)
    """``with memory_watermark(0.9):`` warns once for each card on which tensors take more than 90 % of its total.

    Looks after the forward of every module and at the end, where a new peak of ``max_memory_allocated`` counts as
    well (it is read, not reset). Nothing is limited: `torch.cuda.set_per_process_memory_fraction` does that.

    Args:
        fraction: of the card's total memory, in 0..1.

    Attributes:
        crossings: one for each card, in the order in which they were met.

    Raises:
        ValueError: `fraction` is not between 0 and 1.
    """

    def __init__(self, fraction: float = 0.9) -> None:
        if not isinstance(fraction, int | float) or not 0 < fraction <= 1:
            raise ValueError(
                f"memory_watermark(fraction) takes a part of a card's memory, such as 0.9, got {fraction!r}"
            )
        self.fraction = fraction
        self.crossings: list[Crossing] = []
        self._totals: dict[int, int] = {}
        self._peaks: dict[int, int] = {}
        self._handle: Any = None

    def __enter__(self) -> memory_watermark:
        self._kind = accelerators.kind()
        if self._kind is not None:
            for index in range(accelerators.count(self._kind)):
                total = accelerators.total(self._kind, index)
                if total:
                    self._totals[index] = total
                    self._peaks[index] = accelerators.peak(self._kind, index) or 0
            self._handle = torch.nn.modules.module.register_module_forward_hook(self._after)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._handle is not None:
            self._handle.remove()
            self._look("", None)
            for index, before in self._peaks.items():
                peak = accelerators.peak(str(self._kind), index) or 0
                if peak > before:
                    self._note(index, peak, "", None)

    def _after(self, module: Any, args: Any, output: Any) -> None:
        if len(self.crossings) < len(self._totals):
            self._look(type(module).__name__, sys._getframe(1))

    def _look(self, module: str, frame: FrameType | None) -> None:
        for index in self._totals:
            self._note(index, accelerators.allocated(str(self._kind), index) or 0, module, frame)

    def _note(self, index: int, held: int, module: str, frame: FrameType | None) -> None:
        device, total = f"{self._kind}:{index}", self._totals[index]
        if held < self.fraction * total or any(one.device == device for one in self.crossings):
            return
        user = callsite.nearest(frame)
        crossing = Crossing(device, held, total, module, str(place_of(user)) if user is not None else "")
        self.crossings.append(crossing)
        warnings.warn(str(crossing), MemoryWatermarkWarning, stacklevel=2)
