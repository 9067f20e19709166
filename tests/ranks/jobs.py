"""What the processes of a real group do in these tests; each function runs once in every process."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

import ipydevice

Told = dict[str, Any] | None


def told(report: Any) -> Told:
    return None if report is None else {**report.to_dict(), "text": str(report), "html": report._repr_html_()}


def model() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 2))


def cards(rank: int, size: int) -> str:
    """A card for each process, with the launcher's numbers."""
    os.environ.update(RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE=str(size))
    ipydevice.virtual_gpus(size).enable()
    torch.cuda.set_device(rank)
    return f"cuda:{rank}"


def well(rank: int, size: int) -> list[Told]:
    """A right program, that asks between its own collectives, and asks twice."""
    device = cards(rank, size)
    ddp = DistributedDataParallel(model().to(device), device_ids=[rank])
    ddp(torch.ones(3, 4, device=device)).sum().backward()
    first = ipydevice.debug_ddp(ddp)
    total = torch.tensor(rank)
    dist.all_reduce(total)
    assert int(total) == sum(range(size))
    return [told(first), told(ipydevice.debug_ddp(ddp))]


def wrong(rank: int, size: int) -> Told:
    """Nobody sets the device, and all models stand on the first card; rank 1 builds another one."""
    cards(rank, size)
    torch.cuda.set_device(0)
    mine = model() if rank != 1 else nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 3), nn.BatchNorm1d(3))
    return told(ipydevice.debug_ddp({"net": mine.to("cuda:0")}))


def without_set_device(rank: int, size: int) -> Told:
    device = cards(rank, size)
    torch.cuda.set_device(0)
    ddp = DistributedDataParallel(model().to(device), device_ids=[rank])
    return told(ipydevice.debug_ddp(ddp))


def one_asks(rank: int, size: int) -> Told:
    """Only rank 0 comes to the question; the group's own collectives go on."""
    cards(rank, size)
    report = ipydevice.debug_ddp(model(), timeout=0.5) if rank == 0 else None
    total = torch.tensor(1)
    dist.all_reduce(total)
    assert int(total) == size
    return told(report)


def one_dies(rank: int, size: int) -> list[Told]:
    cards(rank, size)
    first = ipydevice.debug_ddp(model())
    dist.barrier()
    if rank == 1:
        os._exit(3)
    time.sleep(0.5)
    return [told(first), told(ipydevice.debug_ddp(model(), timeout=1))]


def keeper_dies(rank: int, size: int) -> Told:
    """The process that keeps the group's store ends."""
    cards(rank, size)
    dist.barrier()
    if rank == 0:
        os._exit(3)
    time.sleep(0.5)
    return told(ipydevice.debug_ddp(model(), to=1, timeout=5))


def one_hangs(rank: int, size: int) -> list[Told]:
    cards(rank, size)
    first = ipydevice.debug_ddp(model())
    if rank == 1:
        time.sleep(2.5)
        return []
    return [told(first), told(ipydevice.debug_ddp(model(), timeout=1))]


def another_gets_it(rank: int, size: int) -> list[Any]:
    cards(rank, size)
    try:
        ipydevice.debug_ddp(to=size)
    except ValueError as error:
        return [str(error), told(ipydevice.debug_ddp(to=size - 1))]
    return []


def unbalanced(rank: int, size: int) -> Told:
    """Rank 0 keeps everybody's results; rank 1 has loaded a checkpoint onto card 0."""
    device = cards(rank, size)
    kept = [torch.ones(24 << 20, device=device)] if rank == 0 else []
    if rank == 1:
        kept.append(torch.ones(1 << 20, device="cuda:0"))
    report = told(ipydevice.debug_ddp(model().to(device)))
    del kept
    return report


def files(rank: int, size: int, folder: str) -> str:
    """Each writes its report; rank 2 fails before."""
    device = cards(rank, size)
    if rank == 2:
        return ""
    net = model().to(device)
    try:
        net(torch.ones(1, 4))
    except RuntimeError as error:
        return str(ipydevice.write_rank_report(Path(folder) / "reports", net, error))
    return "no error"


def out_of_step(rank: int, size: int) -> list[list[int]]:
    """Rank 1 misses the first call, and is found by those that follow."""
    cards(rank, size)
    missing = []
    if rank == 0:
        report = ipydevice.debug_ddp(timeout=0.2)
        assert report is not None
        missing.append([one.rank for one in report.missing])
    for _ in range(2):
        dist.barrier()
        report = ipydevice.debug_ddp()
        if report is not None:
            missing.append([one.rank for one in report.missing])
    return missing
