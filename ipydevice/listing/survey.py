"""One named object with all that the table needs to know of what is inside."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from ipydevice import placement
from ipydevice.placement import FactReader, Facts, Inside


@dataclass(slots=True)
class Survey:
    """What is inside one object, by device."""

    name: str
    value: Any
    kind: str
    inside: Inside
    tensors: Counter[str] = field(default_factory=Counter)  # how many by device
    memory: dict[Any, tuple[str, int]] = field(default_factory=dict)  # identity -> device and bytes
    facts: Facts | None = None  # of a single tensor

    @property
    def bytes(self) -> int:
        """Bytes of all memory in it, each storage once."""
        if self.facts is not None:
            return self.facts.bytes
        return sum(size for _, size in self.memory.values())

    @property
    def device(self) -> str:
        """Its device, or several with the most used first: "cuda:0 + cpu"."""
        return " + ".join(device for device, _ in self.tensors.most_common())


def survey(name: str, value: Any, kind: str, reader: FactReader) -> Survey:
    """Look at everything inside `value`; call it in a `placement.quiet()` block."""
    if placement.is_tensor(value):
        facts = reader.facts(value)
        found = Survey(name, value, kind, Inside(loose=[value]), Counter((facts.device,)), facts=facts)
        found.memory[_identity(value, facts)] = _held(facts)
        return found
    found = Survey(name, value, kind, placement.inside(value))
    tensors = list(found.inside)
    if kind in ("optimizer", "scheduler"):
        # `step` and a learning rate may stay on the host (torch/optim/adam.py, "capturable")
        tensors = [tensor for tensor in tensors if reader.facts(tensor).shape != ()]
    devices: list[str] = []
    for device, identity, size in reader.held(tensors):
        devices.append(device)
        found.memory[identity] = device, size
    found.tensors.update(devices)
    if not devices:
        device = placement.device_of(value)
        if device != placement.UNKNOWN:
            found.tensors[device] = 1
        if kind == "array":
            found.memory["array", id(value)] = device, placement.bytes_of(value)
    return found


def _identity(tensor: Any, facts: Facts) -> Any:
    return ("tensor", id(tensor)) if facts.memory is None else facts.memory[0]


def _held(facts: Facts) -> tuple[str, int]:
    return facts.device, facts.bytes if facts.memory is None else facts.memory[1]
