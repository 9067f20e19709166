"""What one process tells of itself, and the table of all of them: strings and numbers only."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

from ipydevice.toolbox.troubles import Trouble


@dataclass(frozen=True, slots=True)
class CardMemory:
    """Bytes on one device."""

    device: str
    allocated: int = 0  # by tensors of the process
    reserved: int = 0  # by torch's cache, the tensors' included
    peak: int = 0
    total: int = 0  # of the device


@dataclass(frozen=True, slots=True)
class ModelRow:
    """A module of one process."""

    name: str  # as the process calls it
    kind: str  # its class
    devices: dict[str, int]  # bytes of parameters and buffers by device
    parameters: int  # how many
    digest: str  # of names, shapes and types: equal models have equal ones
    wrapper: str = ""  # "DistributedDataParallel", "DataParallel", "FullyShardedDataParallel"


@dataclass(frozen=True, slots=True)
class RankRow:
    """One process."""

    rank: int
    host: str
    pid: int
    world_size: int | None = None  # the group's; else what the launcher says
    local_rank: int | None = None
    launched_as: int | None = None  # the launcher's RANK
    current: str = "cpu"  # current device
    card: str = ""  # which physical card that is: its UUID, else its number on the host
    cards: int = 0  # devices that the process sees
    visible: str | None = None  # CUDA_VISIBLE_DEVICES or its like
    models: tuple[ModelRow, ...] = ()
    memory: tuple[CardMemory, ...] = ()
    backend: str = ""  # "cpu:gloo,cuda:nccl"; "" without a process group
    nccl: str = ""
    torch: str = ""
    driver: str = ""  # version of CUDA or ROCm that torch was built for
    peers: tuple[str, ...] | None = None  # cards that the current one reaches directly; None: not known
    troubles: tuple[Trouble, ...] = ()  # that the process can see by itself
    error: str = ""  # what ended it: the headline of its diagnosis, or the exception's text
    seconds: float = 0.0  # time.time()

    @property
    def devices(self) -> tuple[str, ...]:
        """Devices of its models, each once."""
        return tuple(dict.fromkeys(device for model in self.models for device in model.devices))

    @property
    def allocated(self) -> int:
        """Bytes of its tensors on all accelerators."""
        return sum(one.allocated for one in self.memory)

    def to_dict(self) -> dict[str, Any]:
        """JSON-able, with stable keys."""
        return asdict(self)

    @classmethod
    def from_dict(cls, given: dict[str, Any]) -> RankRow:
        """The row that `to_dict` has written.

        Raises:
            TypeError, KeyError: it is no such dictionary.
        """
        known = {**given}
        known["models"] = tuple(ModelRow(**one) for one in given["models"])
        known["memory"] = tuple(CardMemory(**one) for one in given["memory"])
        known["troubles"] = tuple(Trouble(**one) for one in given["troubles"])
        known["peers"] = None if given["peers"] is None else tuple(given["peers"])
        return cls(**known)


@dataclass(frozen=True, slots=True)
class Missing:
    """A process that has told nothing."""

    rank: int
    why: str
    host: str = ""
    pid: int | None = None


@dataclass(frozen=True, slots=True)
class RankTrouble:
    """What is wrong with some ranks; `column` is where the table marks it."""

    trouble: Trouble
    ranks: tuple[int, ...]
    column: str = ""


@dataclass(frozen=True, slots=True)
class RanksReport:
    """All processes of one job."""

    rows: tuple[RankRow, ...]
    missing: tuple[Missing, ...] = ()
    troubles: tuple[RankTrouble, ...] = ()
    seconds: float = field(default=0.0)  # that it took to collect

    @property
    def clean(self) -> bool:
        """Whether every process has answered and nothing is wrong."""
        return not self.missing and not self.troubles

    def to_dict(self) -> dict[str, Any]:
        """JSON-able, with stable keys."""
        return asdict(self)

    def __str__(self) -> str:
        from ipydevice.ranks import table

        return table.text(self)

    __repr__ = __str__  # so that a cell that ends with it shows the table

    def _repr_html_(self) -> str:
        from ipydevice.ranks import table

        return table.html(self)
