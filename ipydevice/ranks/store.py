"""Rows through the store of the process group that exists.

Not through a collective: one that a rank does not join would be taken for the next collective of the user's own
program, NCCL wants tensors on cards for it, and its timeout ends the process. A key in the group's store disturbs
nobody; a rank that does not come has simply not written, and is named.
"""

from __future__ import annotations

import json
import os
import time
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, ClassVar

import torch

from ipydevice.ranks import here, modules
from ipydevice.ranks.across import compared
from ipydevice.ranks.report import Missing, RankRow, RanksReport

_PREFIX = "ipydevice/ranks"
_ASKED_EVERY = 0.02  # seconds between two questions whether all have written
_AT_ONCE = 100  # rows read in one message


class _Calls:
    """How often this process has told, and which row of each rank it has read last.

    Rows are numbered by each rank for itself. The reader takes the next of every rank, or a later one, so that a
    call which some ranks have missed does no harm to those that follow.
    """

    store: Any = None
    told = 0
    read: ClassVar[dict[int, int]] = {}


def collect(models: Mapping[str, Any], *, to: int = 0, timeout: float = 10.0) -> RanksReport | None:
    """Tell this process's row, and on rank `to` read those of all others; None on the others, at once.

    Args:
        models: the modules to tell about, by name.
        to: the rank that gets the table.
        timeout: seconds to wait for ranks that have not told; they are named in ``missing``.

    Raises:
        RuntimeError: there is no process group; it is never made here.
        ValueError: `to` is no rank of the group.
    """
    if not here.grouped():
        raise RuntimeError("there is no process group: call torch.distributed.init_process_group() in every process")
    size = torch.distributed.get_world_size()
    if not 0 <= to < size:
        raise ValueError(f"to has to be a rank of this group, 0 to {size - 1}, and is {to}")
    began = time.monotonic()
    store = _store()
    own = here.row(models)
    call = _next_call(store)
    try:
        _write(store, call, own, models)
        if own.rank != to:
            return None
        return _read(store, call, own, size, began, timeout)
    except RuntimeError as error:  # torch.distributed.DistError: the process that keeps the store is gone
        if own.rank != to:
            return None
        reason = (
            f"the group's store does not answer ({str(error).splitlines()[0][:80]}): the process that keeps it is gone"
        )
        gone = tuple(Missing(rank, reason) for rank in range(size) if rank != own.rank)
        return compared(RanksReport((own,), gone, seconds=time.monotonic() - began))


def _store() -> Any:
    """The default group's own store; torch has no public name for it (seen in 2.4 to 2.13)."""
    find: Callable[[], Any] | None = getattr(torch.distributed.distributed_c10d, "_get_default_store", None)
    if find is None:
        raise RuntimeError(
            "this PyTorch does not give its group's store; write report files: write_rank_report(folder)"
        )
    return find()


def _next_call(store: Any) -> int:
    if _Calls.store is not store:  # another group: everybody begins again
        _Calls.store, _Calls.told = store, 0
        _Calls.read.clear()
    _Calls.told += 1
    return _Calls.told


def _key(rank: int, call: int, what: str = "row") -> str:
    return f"{_PREFIX}/{what}/{rank}/{call}"


def _write(store: Any, call: int, row: RankRow, models: Mapping[str, Any]) -> None:
    if models:
        told = json.dumps(modules.parameters_of(models)).encode()  # a tenth of it when packed: names repeat themselves
        store.set(_key(row.rank, call, "parameters"), zlib.compress(told))
    store.set(_key(row.rank, call), json.dumps(row.to_dict()))
    for what in ("row", "parameters") if call > 2 else ():  # the call before this one stays, for ranks that go missing
        try:
            store.delete_key(_key(row.rank, call - 2, what))
        except (RuntimeError, NotImplementedError):  # file stores of old keep everything
            break


def _read(store: Any, call: int, own: RankRow, size: int, began: float, timeout: float) -> RanksReport:
    wanted = {rank: _Calls.read.get(rank, call - 1) + 1 for rank in range(size) if rank != own.rank}
    keys = [_key(rank, number) for rank, number in wanted.items()]
    complete = bool(store.check(keys))
    while not complete and time.monotonic() - began < timeout:
        time.sleep(_ASKED_EVERY)
        complete = bool(store.check(keys))
    told = {
        rank: _latest(store, rank, number)
        for rank, number in wanted.items()
        if complete or store.check([_key(rank, number)])
    }
    _Calls.read.update({rank: number - 1 for rank, number in wanted.items()} | told)
    texts = _several(store, [_key(rank, number) for rank, number in told.items()])
    rows = [own, *(RankRow.from_dict(json.loads(text)) for text in texts)]
    waited = time.monotonic() - began
    missing = tuple(
        _missing(store, rank, number - 1, own, waited) for rank, number in wanted.items() if rank not in told
    )

    def parameters(rank: int) -> Mapping[str, str]:
        key = _key(rank, told.get(rank, call), "parameters")
        found: dict[str, str] = json.loads(zlib.decompress(store.get(key))) if store.check([key]) else {}
        return found

    report = RanksReport(tuple(sorted(rows, key=lambda row: row.rank)), missing, seconds=waited)
    return compared(report, parameters)


def _latest(store: Any, rank: int, number: int) -> int:
    while store.check([_key(rank, number + 1)]):
        number += 1
    return number


def _several(store: Any, keys: list[str]) -> list[bytes]:
    found: list[bytes] = []
    extended = getattr(store, "has_extended_api", None)
    for start in range(0, len(keys), _AT_ONCE):
        part = keys[start : start + _AT_ONCE]
        found += store.multi_get(part) if extended is not None and extended() else [store.get(key) for key in part]
    return found


def _missing(store: Any, rank: int, last_read: int, own: RankRow, waited: float) -> Missing:
    """What is known of a rank that has not told: the row that it told last, and whether its process still runs."""
    before = _key(rank, last_read)
    if not store.check([before]):
        return Missing(rank, f"no answer in {waited:.0f} s: it has ended, hangs, or does not come to this call")
    last = RankRow.from_dict(json.loads(store.get(before)))
    runs = _runs(last.pid) if last.host == own.host else None
    if runs is None:
        why = f"no answer in {waited:.0f} s; it was there {max(0.0, time.time() - last.seconds):.0f} s ago"
    elif runs:
        why = f"no answer in {waited:.0f} s, and its process runs: it hangs, or does not come to this call"
        why += f" (`py-spy dump --pid {last.pid}` shows where it is)"
    else:
        why = "its process has ended"
    return Missing(rank, why, last.host, last.pid)


def _runs(pid: int) -> bool | None:
    """Whether a process of this machine is there and no zombie, which its parent has not waited for yet.

    None on Windows, where ``os.kill(pid, 0)`` ends the process.
    """
    if os.name == "nt":
        return None
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (OSError, IndexError):
        return True
    return state != "Z"
