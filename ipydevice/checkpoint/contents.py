"""What is found in a checkpoint file: tensors, storages, and the code that loading would name."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from typing import Literal

MOST_TENSORS = 100_000  # listed

Format = Literal["zip", "legacy", "torchscript", "safetensors", "index", "pickle"]


@dataclass(frozen=True, slots=True)
class Storage:
    """One block of bytes in the file."""

    key: str
    location: str  # the device it was saved from: "cpu", "cuda:1"; "" where the format does not tell
    bytes: int


@dataclass(frozen=True, slots=True)
class Tensor:
    """One tensor that lies in a storage, or on meta without one."""

    path: str  # how to reach it in what torch.load returns: "['model']['fc.weight']"
    kind: str  # "tensor" or "parameter"
    device: str
    shape: tuple[int, ...] | None
    dtype: str | None
    storage: Storage | None
    bytes: int
    requires_grad: bool = False
    file: str = ""  # the shard of a sharded checkpoint


@dataclass(slots=True)
class Contents:
    """Everything that one file tells without being loaded."""

    path: str
    format: Format
    tensors: list[Tensor] = field(default_factory=list)
    named: list[str] = field(default_factory=list)  # classes and functions that loading looks up, each once
    called: list[str] = field(default_factory=list)  # of these, what loading calls, each once
    opcodes: set[str] = field(default_factory=set)
    damage: list[str] = field(default_factory=list)
    devices: Counter[str] = field(default_factory=Counter)  # how many tensors were saved from each
    cut: bool = False  # not everything was looked at: there may be more tensors
    _storages: dict[tuple[str, str], Storage] = field(default_factory=dict)

    def add(self, tensor: Tensor) -> None:
        """One more tensor; beyond the limit it is only counted."""
        self.devices[tensor.device] += 1
        if tensor.storage is not None:
            self._storages[tensor.file, tensor.storage.key] = tensor.storage
        if len(self.tensors) < MOST_TENSORS:
            self.tensors.append(tensor)

    def add_shard(self, name: str, part: Contents) -> None:
        """What another file holds, which is a part of this checkpoint."""
        room = MOST_TENSORS - len(self.tensors)
        self.tensors += [replace(tensor, file=name) for tensor in part.tensors[:room]]
        self.devices += part.devices
        self._storages |= {(name, storage.key): storage for storage in part.storages}
        self.named += [name for name in part.named if name not in self.named]
        self.called += [name for name in part.called if name not in self.called]
        self.opcodes |= part.opcodes
        self.damage += [f"shard {name}: {one}" for one in part.damage]
        self.cut |= part.cut

    @property
    def left(self) -> int:
        """How many tensors are only counted."""
        return self.devices.total() - len(self.tensors)

    @property
    def storages(self) -> list[Storage]:
        """Each storage once."""
        return list(self._storages.values())
