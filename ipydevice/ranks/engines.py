"""Rows of the engines of an ipyparallel cluster, asked by its client; and their errors as one diagnosis."""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from ipydevice.ranks.across import compared
from ipydevice.ranks.report import Missing, RankRow, RanksReport

_ASKED_EVERY = 0.02  # seconds


def active_view(shell: Any) -> Any:
    """The view that ``%px`` uses in this shell; None where there is no ipyparallel client."""
    if shell is None or "ipyparallel" not in sys.modules:
        return None
    magics = shell.magics_manager.registry.get("ParallelMagics")
    return getattr(magics, "view", None)


def collect(view: Any, *, timeout: float = 10.0) -> RanksReport:
    """The table of a view's engines; one that is busy, or has ended, is named after `timeout` seconds."""
    began = time.monotonic()
    client = view.client
    targets = (
        view.targets
        if isinstance(view.targets, list)
        else client.ids
        if view.targets in (None, "all")
        else [view.targets]
    )
    alive = [engine for engine in targets if engine in client.ids]
    asked = {engine: client[engine].apply_async(answer) for engine in alive}
    while not all(result.ready() for result in asked.values()) and time.monotonic() - began < timeout:
        time.sleep(_ASKED_EVERY)
    waited = time.monotonic() - began
    rows: list[tuple[int, RankRow]] = []
    missing = [Missing(engine, "its engine has ended") for engine in targets if engine not in alive]
    for engine, result in asked.items():
        if not result.ready():
            result.abort() if hasattr(result, "abort") else None
            there = engine in client.ids
            why = f"no answer in {waited:.0f} s: its engine is busy with a cell" if there else "its engine has ended"
            missing.append(Missing(engine, why))
        elif result.successful():
            rows.append((engine, RankRow.from_dict(result.get())))
        else:
            missing.append(Missing(engine, f"its engine cannot answer: {_reason(result)}"))
    return compared(RanksReport(tuple(_by_rank(rows)), tuple(missing), seconds=waited))


def _reason(result: Any) -> str:
    try:
        result.get()
    except Exception as error:  # noqa: BLE001 (whatever the engine raised)
        return str(error).splitlines()[0][:100] if str(error) else type(error).__name__
    return ""


def _by_rank(rows: Sequence[tuple[int, RankRow]]) -> list[RankRow]:
    """Engines outside of a process group are all rank 0; then their own numbers tell them apart."""
    ranks = Counter(row.rank for _, row in rows)
    found = [replace(row, rank=engine) if ranks[row.rank] > 1 else row for engine, row in rows]
    return sorted(found, key=lambda row: row.rank)


def answer() -> dict[str, Any]:
    """On an engine: its row, with the modules of its namespace."""
    from ipydevice import session
    from ipydevice.ranks import here

    return here.row(here.models_in(session.workspace(session.current_shell()))).to_dict()
