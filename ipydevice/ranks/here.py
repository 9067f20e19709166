"""The row of this process. Metadata only: nothing is moved, run or waited for, and no driver is started."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Mapping
from typing import Any

import torch

from ipydevice import launchers
from ipydevice.ranks import alone
from ipydevice.ranks.modules import row_of
from ipydevice.ranks.report import CardMemory, RankRow
from ipydevice.toolbox import accelerators, numbering


def row(models: Mapping[str, Any] | None = None, *, error: str = "") -> RankRow:
    """What this process is and does; `models` are the modules to tell about, by their names."""
    models = {} if models is None else models
    kind = accelerators.kind()
    group = grouped()
    launched = launchers.rank()
    rank = torch.distributed.get_rank() if group else launched if launched is not None else 0
    size = torch.distributed.get_world_size() if group else launchers.world_size()
    started = kind is not None and accelerators.in_use(kind)
    found = RankRow(
        rank,
        socket.gethostname(),
        os.getpid(),
        world_size=size,
        local_rank=launchers.local_rank(),
        launched_as=launched,
        current="cpu" if kind is None else f"{kind}:{accelerators.current(kind)}",
        card=_card(str(kind)) if started else "",
        cards=0 if kind is None else accelerators.count(kind),
        visible=numbering.visible_devices(kind or "cuda"),
        models=tuple(row_of(name, model) for name, model in models.items()),
        memory=_memory(str(kind)) if started else (),
        backend=_backend() if group else "",
        nccl=_nccl(),
        torch=str(torch.__version__),
        driver=str(torch.version.cuda or getattr(torch.version, "hip", None) or ""),
        peers=_peers(str(kind)) if started else None,
        error=error,
        seconds=time.time(),
    )
    return alone.judged(found, models)


def grouped() -> bool:
    """Whether this process belongs to a process group."""
    distributed = torch.distributed
    return bool(distributed.is_available() and distributed.is_initialized())


def _card(kind: str) -> str:
    """Which card the current device is, the same for all processes of a host that are on it."""
    device = numbering.device_map()[accelerators.current(kind)]
    return device.uuid or device.physical


def _memory(kind: str) -> tuple[CardMemory, ...]:
    found = []
    for index in range(accelerators.count(kind)):
        held = accelerators.allocated(kind, index) or 0, accelerators.reserved(kind, index) or 0
        if any(held) or index == accelerators.current(kind):
            peak, total = accelerators.peak(kind, index) or 0, accelerators.total(kind, index) or 0
            found.append(CardMemory(f"{kind}:{index}", *held, peak, total))
    return tuple(found)


def _backend() -> str:
    """The back end of each kind of device: "cpu:gloo,cuda:nccl"."""
    distributed: Any = torch.distributed
    try:
        return str(distributed.get_backend_config())
    except (AttributeError, RuntimeError, ValueError):
        return str(distributed.get_backend())


def _nccl() -> str:
    if not (torch.distributed.is_available() and torch.distributed.is_nccl_available()):
        return ""
    library: Any = torch.cuda.nccl
    try:
        found = library.version()
    except (AttributeError, RuntimeError):
        return ""
    return ".".join(map(str, found)) if isinstance(found, tuple) else str(found)


def _peers(kind: str) -> tuple[str, ...] | None:
    """Cards that the current one reaches without the host (NVLink, or PCIe where it is allowed)."""
    current, count = accelerators.current(kind), accelerators.count(kind)
    answers = {n: accelerators.ask(kind, "can_device_access_peer", current, n) for n in range(count) if n != current}
    if any(answer is None for answer in answers.values()):
        return None
    return tuple(f"{kind}:{n}" for n, answer in answers.items() if answer)
