"""The state of all devices at one moment, and what has changed between two."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, fields
from typing import Any

import torch

from ipydevice.show import quantities
from ipydevice.toolbox import accelerators


@dataclass(frozen=True, slots=True)
class DeviceState:
    """One device; bytes, and None where the kind of device does not tell."""

    device: str  # "cuda:0"
    name: str = ""
    capability: str = ""  # "8.0"
    total: int | None = None  # of the card
    allocated: int | None = None  # by tensors of this process
    reserved: int | None = None  # by torch's cache, the tensors' included
    peak: int | None = None  # most allocated so far
    free: int | None = None  # on the card, for any process; asked only where this process is at work
    stream: str = ""  # this thread's current stream; "default"


@dataclass(frozen=True, slots=True)
class Change:
    """One fact that differs between two snapshots."""

    device: str
    what: str
    before: Any
    after: Any

    def __str__(self) -> str:
        if self.what in _BYTES:
            before, after = self.before or 0, self.after or 0
            sign = "+" if after > before else "-"
            return (
                f"{self.device} {self.what} {sign}{quantities.size(abs(after - before))}, now {quantities.size(after)}"
            )
        return f"{self.device} {self.what} {self.before} → {self.after}".strip()


@dataclass(frozen=True, slots=True)
class DeviceSnapshot:
    """All devices at one moment: strings and numbers."""

    devices: tuple[DeviceState, ...]
    current: str  # this thread's current device
    default: str  # where ``torch.ones(2)`` is made
    seconds: float = field(default=0.0, compare=False)  # time.time()

    def diff(self, later: DeviceSnapshot) -> tuple[Change, ...]:
        """What has changed from this one to a later one; () where nothing has.

        Raises:
            TypeError: `later` is no snapshot.
        """
        if not isinstance(later, DeviceSnapshot):
            raise TypeError(f"diff() takes a snapshot, such as device_snapshot(), but got {type(later).__name__}")
        return tuple(self._changes(later))

    def _changes(self, later: DeviceSnapshot) -> Iterator[Change]:
        for what in ("current", "default"):
            if getattr(self, what) != getattr(later, what):
                yield Change("", f"{what} device", getattr(self, what), getattr(later, what))
        before = {state.device: state for state in self.devices}
        after = {state.device: state for state in later.devices}
        for device in dict.fromkeys([*before, *after]):
            old, new = before.get(device, DeviceState(device)), after.get(device, DeviceState(device))
            for one in fields(DeviceState):
                if getattr(old, one.name) != getattr(new, one.name):
                    yield Change(device, one.name, getattr(old, one.name), getattr(new, one.name))

    def to_dict(self) -> dict[str, Any]:
        """JSON-able, with stable keys."""
        return asdict(self)

    def __str__(self) -> str:
        lines = [f"current {self.current}, new tensors on {self.default}"]
        for state in self.devices:
            sizes = [f"{what} {quantities.size(getattr(state, what))}" for what in _BYTES if getattr(state, what)]
            lines.append(f"{state.device} {state.name}: {', '.join([*sizes, f'stream {state.stream}'])}")
        return "\n".join(lines)


_BYTES = ("allocated", "reserved", "peak", "free", "total")


def device_snapshot() -> DeviceSnapshot:
    """Current device, and for every device its properties, memory and this thread's stream.

    ``before.diff(device_snapshot())`` tells what has changed. A driver that has not been started yet stays so: its
    devices are listed without properties. No work is waited for.
    """
    kind = accelerators.kind()
    default = str(torch.get_default_device())
    if kind is None:
        return DeviceSnapshot((), "cpu", default, time.time())
    states = tuple(_state(kind, index) for index in range(accelerators.count(kind)))
    return DeviceSnapshot(states, f"{kind}:{accelerators.current(kind)}", default, time.time())


def _state(kind: str, index: int) -> DeviceState:
    device = f"{kind}:{index}"
    if not accelerators.in_use(kind):
        return DeviceState(device)
    properties = accelerators.ask(kind, "get_device_properties", index)
    capability = accelerators.ask(kind, "get_device_capability", index)
    allocated = accelerators.allocated(kind, index)
    return DeviceState(
        device,
        name=str(getattr(properties, "name", "") or ""),
        capability=".".join(map(str, capability)) if isinstance(capability, tuple) else "",
        total=accelerators.total(kind, index),
        allocated=allocated,
        reserved=accelerators.reserved(kind, index),
        peak=accelerators.peak(kind, index),
        free=_free(kind, index, allocated),
        stream=_stream(kind, index),
    )


def _free(kind: str, index: int, allocated: int | None) -> int | None:
    """``cudaMemGetInfo`` makes a context, hundreds of MB, on a card that this process does not use yet."""
    if not allocated and index != accelerators.current(kind):
        return None
    found = accelerators.ask(kind, "mem_get_info", index)
    return int(found[0]) if isinstance(found, tuple) and len(found) == 2 else None


def _stream(kind: str, index: int) -> str:
    stream = accelerators.ask(kind, "current_stream", index)
    number = getattr(stream, "stream_id", getattr(stream, "cuda_stream", 0))
    return f"{number:#x}" if type(number) is int and number else "default"
