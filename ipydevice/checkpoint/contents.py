"""What is found in a checkpoint file: tensors, storages, and the code that loading would name."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

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
    left: int = 0  # tensors beyond the limit

    @property
    def storages(self) -> list[Storage]:
        """Each storage once."""
        found = {(one.file, one.storage.key): one.storage for one in self.tensors if one.storage is not None}
        return list(found.values())
