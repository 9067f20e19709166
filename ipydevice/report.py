"""What a check says: every device mistake of a piece of code, and what it moved between devices.

Like a `Diagnosis` this is strings and numbers only, so that a report keeps no tensor alive.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import Any, Literal

from ipydevice.diagnosis import Diagnosis, Fix, Place, Row

DISPLAYED = "displayed"  # the `call` of what a cell shows of itself: its last expression
OFFERED = 2  # fixes of one finding, and of odd objects together, that views show


@dataclass(frozen=True, slots=True)
class CheckFinding:
    """One mistake, however many calls it stopped."""

    diagnosis: Diagnosis  # of the first call that it stopped
    places: tuple[Place, ...] = ()  # every line on which it stopped a call, in the order met
    count: int = 1  # calls that it stopped
    repaired: bool = True  # False: the call failed, and its error was raised
    repair: str = ""  # "labels was copied to cuda:0 for each call"
    mended_with: int | None = None  # the index of an earlier finding whose first fix mends this one too

    @property
    def line(self) -> tuple[int | None, str | None, int | None]:
        """What is the same for findings on one line: cell, file, line."""
        failed = self.diagnosis.failed
        return failed.cell, failed.file, failed.line

    @property
    def offered(self) -> tuple[Fix, ...]:
        """The fixes that views show; further ones have the numbers behind all of these."""
        return self.diagnosis.fixes[:OFFERED] if self.mended_with is None else ()


@dataclass(frozen=True, slots=True)
class Transfer:
    """One place in the code that copies between devices, or makes the host wait for one."""

    place: Place
    kind: Literal["copy", "sync"]
    call: str  # ".item()", ".to()", "if tensor", "torch.tensor()", "displayed"
    expression: str  # the call as written: "loss.item()"
    source: str  # "cuda:0"
    target: str  # "cpu"
    count: int = 1
    bytes: int = 0  # of all `count` together
    shape: tuple[int, ...] | None = None  # of the first
    dtype: str | None = None
    explicit: bool = False  # the code asks for it: .to(), .cpu(); False for what happens along the way
    loop: bool = False
    inside: bool = False  # a library does it, in the call that the user has written
    advice: str = ""


@dataclass(frozen=True, slots=True)
class Elsewhere:
    """A line that makes tensors on another device than the one expected, or uses such."""

    place: Place
    role: Literal["made", "used"]
    call: str
    device: str
    count: int = 1
    shape: tuple[int, ...] | None = None
    dtype: str | None = None


@dataclass(slots=True)
class CheckReport:
    """Filled when the checked code is over, also when it has failed."""

    findings: tuple[CheckFinding, ...] = ()
    transfers: tuple[Transfer, ...] = ()
    elsewhere: tuple[Elsewhere, ...] = ()
    odd: tuple[Row, ...] = ()  # modules that it calls and objects that it names with something stray in them
    mends: tuple[Fix, ...] = ()  # repairs of those objects
    together: Fix | None = None  # the first fixes of all findings in one
    expected: str | None = None  # the device that everything should be on
    calls: int = 0  # calls of torch that were looked at
    seconds: float = 0.0
    error: str = ""  # type of the exception that ended it: "ValueError"
    stopped: bool = False  # told to stop at the first mistake, and did
    dry: bool = False  # the names that it made were not kept
    mutated: tuple[str, ...] = ()  # after a dry run: what was changed in place all the same
    notes: tuple[str, ...] = ()
    cell: int | None = None  # the n of In [n]
    cell_id: str | None = None
    cell_source: str | None = None
    done: bool = field(default=False)

    @property
    def clean(self) -> bool:
        """Whether nothing was on a wrong device."""
        return not self.findings and not self.elsewhere

    @property
    def fixes(self) -> tuple[Fix, ...]:
        """All fixes in the order in which views number them, those first that views show."""
        offered = [fix for finding in self.findings for fix in finding.offered]
        further = [fix for finding in self.findings for fix in finding.diagnosis.fixes[OFFERED:]]
        first = () if self.together is None else (self.together,)
        return (*first, *offered, *self.mends[:OFFERED], *further, *self.mends[OFFERED:])

    def to_dict(self) -> dict[str, Any]:
        """JSON-able, with stable keys."""
        plain: dict[str, Any] = {}
        for item in dataclasses.fields(self):
            value = getattr(self, item.name)
            if item.name == "findings":
                plain["findings"] = [_finding(one) for one in value]
            elif isinstance(value, tuple):
                plain[item.name] = [dataclasses.asdict(one) if dataclasses.is_dataclass(one) else one for one in value]  # type: ignore[arg-type]
            else:
                plain[item.name] = dataclasses.asdict(value) if dataclasses.is_dataclass(value) else value  # type: ignore[arg-type]
        return plain

    def __str__(self) -> str:
        from ipydevice import show

        return show.string(self)

    def _repr_html_(self) -> str:
        from ipydevice import show

        return show.html(self)

    def _ipython_display_(self) -> None:
        """Where a cell ends with it, the panel is shown and not its fields."""
        from ipydevice import show  # a room below this one, so only when asked

        show.display(self)


def _finding(finding: CheckFinding) -> dict[str, Any]:
    return {
        "diagnosis": finding.diagnosis.to_dict(),
        "places": [dataclasses.asdict(place) for place in finding.places],
        "count": finding.count,
        "repaired": finding.repaired,
        "repair": finding.repair,
        "mended_with": finding.mended_with,
    }
