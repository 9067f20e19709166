"""What ran in this session: the cells as the user wrote them, in the order in which they ran."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(slots=True)
class Cell:
    """One run of a cell."""

    number: int  # the n of In [n]
    raw: str  # the text as the user wrote it
    cell_id: str | None = None  # the front end's id; None under nbclient and IPython 7
    started: float | None = None  # time.monotonic() at the start
    duration: float | None = None  # seconds; None while it runs, or rebuilt from history
    success: bool | None = None  # None while it runs, or rebuilt from history


@dataclass
class CellHistory:
    """Runs of cells, the oldest first. Re-running a cell adds an entry."""

    cells: list[Cell] = field(default_factory=list)
