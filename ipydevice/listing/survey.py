"""One named object with all that the table needs to know of what is inside."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ipydevice import placement
from ipydevice.placement import FactReader, Facts, Inside

Memory = Mapping[Any, tuple[str, int]]  # identity of a storage -> its device and bytes


@dataclass(slots=True)
class One:
    """A tensor with a name of its own. A workspace may have ten thousand, so nothing is stored twice."""

    name: str
    value: Any
    kind: str
    facts: Facts

    @property
    def device(self) -> str:
        return self.facts.device

    @property
    def devices(self) -> Iterable[str]:
        return (self.facts.device,)

    @property
    def bytes(self) -> int:
        return self.facts.bytes

    @property
    def tensors(self) -> tuple[Any, ...]:
        return (self.value,)

    @property
    def is_cut(self) -> bool:
        return False

    @property
    def place(self) -> tuple[Any, tuple[str, int]]:
        """Identity of its memory, or of itself where it has none of its own; device and bytes of that memory."""
        device, _, _, size, memory, _ = self.facts
        return (("tensor", id(self.value)), (device, size)) if memory is None else (memory[0], (device, memory[1]))

    @property
    def memory(self) -> Memory:
        return dict((self.place,))


@dataclass(slots=True)
class Many:
    """A module, optimizer, container or other thing that holds tensors; also what has a device but no tensors."""

    name: str
    value: Any
    kind: str
    inside: Inside
    counts: Counter[str] = field(default_factory=Counter)  # how many tensors by device
    registered: Counter[str] = field(default_factory=Counter)  # of these, what is in tables of modules
    memory: dict[Any, tuple[str, int]] = field(default_factory=dict)

    @property
    def device(self) -> str:
        """Its device, or several with the most used first: "cuda:0 + cpu"."""
        return " + ".join(device for device, _ in self.counts.most_common())

    @property
    def devices(self) -> Iterable[str]:
        return self.counts

    @property
    def bytes(self) -> int:
        """Bytes of all memory in it, each storage once."""
        return sum(size for _, size in self.memory.values())

    @property
    def tensors(self) -> Iterable[Any]:
        return self.inside

    @property
    def is_cut(self) -> bool:
        """Whether there may be more inside than was looked at: then its bytes and counts are lower bounds."""
        return bool(self.inside.cut)


Survey = One | Many


def survey(name: str, value: Any, kind: str, reader: FactReader) -> Survey:
    """Look at everything inside `value`; call it in a `placement.quiet()` block."""
    if placement.is_tensor(value):
        return One(name, value, kind, reader.facts(value))
    found = Many(name, value, kind, placement.inside(value, reader.parts))
    tensors: Iterable[Any] = found.inside
    if kind in ("optimizer", "scheduler"):
        # `step` and a learning rate may stay on the host (torch/optim/adam.py, "capturable")
        tensors = [tensor for tensor in tensors if reader.facts(tensor).shape != ()]
    devices = reader.tally(tensors, found.memory)
    found.counts.update(devices)
    if kind == "module":
        found.registered.update(devices[: len(found.inside.registered)])
    if not devices:
        device = placement.device_of(value)
        if device != placement.UNKNOWN:
            found.counts[device] = 1
        memory = placement.memory_of_storage(value) if kind == "storage" else None
        if memory is not None:
            found.memory[memory[0]] = device, memory[1]
        if kind == "array":
            found.memory["array", id(value)] = device, placement.bytes_of(value)
    return found
