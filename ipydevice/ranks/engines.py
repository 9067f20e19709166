"""The engines of an ipyparallel cluster, asked by its client without waiting for one that is busy or gone."""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ipydevice.ranks.across import compared
from ipydevice.ranks.report import Missing, RankRow, RanksReport

_ASKED_EVERY = 0.02  # seconds


def active_view(shell: Any) -> Any:
    """The view that ``%px`` uses in this shell; None where there is no ipyparallel client."""
    if shell is None or "ipyparallel" not in sys.modules:
        return None
    return getattr(shell.magics_manager.registry.get("ParallelMagics"), "view", None)


def client_in(namespace: Mapping[str, Any]) -> Any:
    """The client of ``%px``, else one that the namespace names; None without one."""
    from ipydevice.session import current_shell

    view = active_view(current_shell())
    if view is not None:
        return view.client
    kinds: Any = sys.modules.get("ipyparallel")
    return next((one for one in list(namespace.values()) if kinds is not None and type(one) is kinds.Client), None)


def ask(client: Any, numbers: Iterable[int], question: Callable[[], Any], *, timeout: float) -> dict[int, Any]:
    """What each engine answers, by number; those that do not within `timeout` seconds, or raise, are left out."""
    asked = _send(client, numbers, question) if client is not None else {}
    _wait(asked, timeout)
    return {engine: result.get() for engine, result in asked.items() if result.ready() and result.successful()}


def _send(client: Any, numbers: Iterable[int], question: Callable[[], Any]) -> dict[int, Any]:
    there = set(client.ids)
    return {engine: client[engine].apply_async(question) for engine in numbers if engine in there}


def _wait(asked: Mapping[int, Any], timeout: float) -> None:
    end = time.monotonic() + timeout
    while not all(result.ready() for result in asked.values()) and time.monotonic() < end:
        time.sleep(_ASKED_EVERY)


def collect(view: Any, *, timeout: float = 10.0) -> RanksReport:
    """The table of a view's engines; one that is busy, or has ended, is named after `timeout` seconds."""
    began = time.monotonic()
    client = view.client
    given = view.targets
    targets = client.ids if given in (None, "all") else [given] if isinstance(given, int) else list(given)
    asked = _send(client, targets, answer)
    _wait(asked, timeout)
    waited = time.monotonic() - began
    rows: list[tuple[int, RankRow]] = []
    missing = []
    for engine in targets:
        result = asked.get(engine)
        if result is None or engine not in client.ids:
            missing.append(Missing(engine, "its engine has ended"))
        elif not result.ready():
            missing.append(Missing(engine, f"no answer in {waited:.0f} s: its engine is busy with a cell, or hangs"))
        elif result.successful():
            rows.append((engine, RankRow.from_dict(result.get())))
        else:
            missing.append(Missing(engine, f"its engine cannot answer: {_reason(result)}"))
    return compared(RanksReport(tuple(_by_rank(rows)), tuple(missing), seconds=waited))


def _reason(result: Any) -> str:
    try:
        result.get()
    except Exception as error:  # noqa: BLE001 (whatever the engine raised)
        return str(error).partition("\n")[0][:100] or type(error).__name__
    return ""


def _by_rank(rows: Sequence[tuple[int, RankRow]]) -> list[RankRow]:
    """Engines outside of a process group are all rank 0; then their own numbers tell them apart."""
    ranks = Counter(row.rank for _, row in rows)
    found = [replace(row, rank=engine) if ranks[row.rank] > 1 else row for engine, row in rows]
    return sorted(found, key=lambda row: row.rank)


def answer() -> dict[str, Any]:
    """On an engine: its row, with the modules of its namespace."""
    from ipydevice import session
    from ipydevice.ranks import here, modules

    return here.row(modules.models_in(session.workspace(session.current_shell()))).to_dict()
