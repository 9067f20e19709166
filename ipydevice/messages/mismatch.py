"""What one error text says about devices, and what it cannot say."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

Kind = Literal["placement", "availability", "meta"]


@dataclass(frozen=True, slots=True)
class TextFrame:
    """One frame of a traceback that came as text: from a worker process, a replica, a compiler."""

    file: str
    line: int
    function: str
    source: str = ""


@dataclass(frozen=True, slots=True)
class Mismatch:
    """A device error as its text tells it. Fields that the text leaves open are None or empty."""

    id: str  # "PT001"; "reader" where no template fits and the general reader found it
    family: str  # "common_check", "conv", "numpy", "availability", ...
    text: str  # as raised
    devices: tuple[str, ...] = ()  # in the order stated, each once
    op: str | None = None  # aten name without overload: "addmm"
    argument: str | None = None  # the argument that the message names
    argument_device: str | None = None
    reference_device: str | None = None  # the device it was compared with; not "where the others are"
    arguments: tuple[str, ...] = ()  # the op's arguments in the order checked, the first defined one is the reference
    roles: dict[str, str] = field(default_factory=dict)  # {"input": "cpu", "weight": "cuda:0"}; read-only
    host_required: str | None = None  # what has to be on the host by rule: "lengths", "numpy"
    kind: Kind = "placement"
    exception_type: str = ""
    library: str | None = None  # None: PyTorch itself
    versions: str = ""  # "2.8 and later"
    unknown: tuple[str, ...] = ()  # what the text cannot tell
    confidence: Literal["exact", "reader"] = "exact"
    wrapped_in: str | None = None  # "DataLoader worker process 0"
    frames: tuple[TextFrame, ...] = ()  # of an embedded traceback, the outermost first
    meaning: str = ""  # one line: what this message is about
    order: str = ""  # what the order of the devices in the text means
