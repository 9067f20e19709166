"""What one process can see to be wrong with itself."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import torch

from ipydevice import placement
from ipydevice.placement.kinds import attributes
from ipydevice.ranks.modules import modules_of, tensors_of
from ipydevice.ranks.report import ModelRow, RankRow
from ipydevice.show import quantities
from ipydevice.toolbox.troubles import Trouble, some

_subclass = type.__subclasscheck__
_HOSTS = ("cpu", "meta")
_WORTH_A_WORD = 2**20  # bytes on another card


def judged(row: RankRow, models: Mapping[str, Any]) -> RankRow:
    """The row with its troubles."""
    found = [*_of_numbers(row), *_of_current_device(row), *_of_memory(row)]
    for told in row.models:
        model = models[told.name]
        found += [*_of_model(row, told), *_of_host(row, told), *_of_backend(row, told), *_of_device_ids(told, model)]
        found += _of_batch_norm(row, told, model)
    return replace(row, troubles=tuple(found))


def _of_numbers(row: RankRow) -> Iterator[Trouble]:
    if row.launched_as is not None and row.backend and row.launched_as != row.rank:
        yield Trouble(
            f"the launcher calls this process RANK {row.launched_as} and its process group {row.rank}",
            "init_process_group() without rank= reads RANK",
            "rank",
        )
    if row.local_rank is not None and row.cards > 1 and row.local_rank >= row.cards:
        yield Trouble(
            f"LOCAL_RANK is {row.local_rank} and there are {row.cards} cards",
            "start as many processes on a machine as it has cards",
            "too_few_cards",
        )


def _of_current_device(row: RankRow) -> Iterator[Trouble]:
    cards = [device for device in row.devices if device.partition(":")[0] not in _HOSTS]
    if len(cards) == 1 and cards[0] != row.current:
        index = cards[0].partition(":")[2]
        yield Trouble(
            f"the model is on {cards[0]} and the current device is {row.current}, where collectives and plain "
            '"cuda" go',
            f"torch.cuda.set_device({index}) first of all",
            "current_device",
        )
    elif not cards and row.local_rank is not None and row.cards > 1 and row.current.partition(":")[0] not in _HOSTS:
        index = row.current.partition(":")[2]
        if index != str(row.local_rank) and row.local_rank < row.cards:
            yield Trouble(
                f"LOCAL_RANK is {row.local_rank} and the current device is {row.current}",
                "torch.cuda.set_device(local_rank) first of all",
                "current_device",
                certain=False,
            )
    if len(cards) == 1 and row.local_rank is not None and row.cards > 1:
        index = cards[0].partition(":")[2]
        if index != str(row.local_rank):
            by_rank = index == str(row.rank)
            words = "its RANK; the card of a process is that of its LOCAL_RANK" if by_rank else "not its LOCAL_RANK"
            yield Trouble(
                f"the model is on card {index}, {words}, {row.local_rank}",
                'int(os.environ["LOCAL_RANK"]) numbers the processes of one machine',
                "local_rank",
                certain=by_rank,
            )


def _of_memory(row: RankRow) -> Iterator[Trouble]:
    own = {row.current, *row.devices}
    for one in row.memory:
        if one.device not in own and one.reserved >= _WORTH_A_WORD:
            yield Trouble(
                f"works on {row.current} and holds {quantities.size(one.reserved)} on {one.device} too",
                "a checkpoint loaded without map_location, or a bare .cuda() before set_device()",
                "memory_elsewhere",
            )


def _of_model(row: RankRow, told: ModelRow) -> Iterator[Trouble]:
    if not row.backend or row.world_size in (None, 1):
        return
    if not told.wrapper:
        yield Trouble(
            f"{told.name} is not wrapped: each process trains its own, and gradients are not averaged",
            f"{told.name} = DistributedDataParallel({told.name}, device_ids=[local_rank])",
            "not_wrapped",
            certain=False,
        )
    elif told.wrapper == "DataParallel":
        yield Trouble(
            f"{told.name} is a DataParallel in {row.world_size} processes: it spreads over the cards of the others",
            "DistributedDataParallel instead",
            "data_parallel",
        )


def _of_host(row: RankRow, told: ModelRow) -> Iterator[Trouble]:
    if row.cards and told.devices and all(device == "cpu" for device in told.devices):
        yield Trouble(
            f"{told.name} is on cpu, and there is {row.current}", f"{told.name}.to({row.current!r})", "on_host", False
        )


def _of_backend(row: RankRow, told: ModelRow) -> Iterator[Trouble]:
    if not row.backend:
        return
    ends = dict(part.split(":", 1) for part in row.backend.split(",") if ":" in part) or {"cpu": row.backend}
    for device in told.devices:
        kind = device.partition(":")[0]
        end = ends.get(kind, "")
        if kind == "cpu" and (end == "nccl" or (not end and "nccl" in row.backend)):
            yield Trouble(
                f"{told.name} is on cpu and the process group is NCCL's, which moves only tensors on cards",
                'model.to(local_rank), or init_process_group("cpu:gloo,cuda:nccl")',
                "cpu_with_nccl",
            )
        elif kind == "cuda" and end == "gloo" and row.nccl:
            yield Trouble(
                f"{told.name} is on {device} and its collectives go through gloo, by way of the host",
                'init_process_group("nccl") where there are cards',
                "cuda_with_gloo",
                certain=False,
            )
        elif kind not in _HOSTS and not end and ends.keys() != {"cpu"}:
            yield Trouble(
                f"{told.name} is on {device}, for which the process group has no back end ({row.backend})",
                "init_process_group() without a back end takes one for each kind of device",
                "no_backend",
            )


def _of_device_ids(told: ModelRow, model: Any) -> Iterator[Trouble]:
    if told.wrapper != "DistributedDataParallel":
        return
    held = attributes(model)
    ids = held.get("device_ids")
    if type(ids) is not list or not ids:
        return
    wanted = {f"{held.get('device_type', 'cuda')}:{index}" for index in ids}
    stray = [device for device in told.devices if device not in wanted]
    if stray:
        yield Trouble(
            f"DistributedDataParallel has device_ids={ids} and {told.name} is on {', '.join(told.devices)}",
            "move the model first and wrap it afterwards, with the device_ids of where it is",
            "device_ids",
        )


def _of_batch_norm(row: RankRow, told: ModelRow, model: Any) -> Iterator[Trouble]:
    norm = torch.nn.modules.batchnorm
    parts = [(path.removeprefix("."), part) for path, part in modules_of(model)]
    synced = [(name, part) for name, part in parts if _subclass(norm.SyncBatchNorm, type(part))]
    every = [(name, part) for name, part in parts if _subclass(norm._BatchNorm, type(part))]
    plain = [name for name, part in every if not _subclass(norm.SyncBatchNorm, type(part))]
    hosted = [name for name, part in synced if any(placement.device_of(t) == "cpu" for _, t in tensors_of(part))]
    if hosted:
        yield Trouble(
            f"{some(hosted)}: SyncBatchNorm runs on cards alone, and is on cpu",
            "move the model to its card before the first step",
            "sync_batch_norm",
        )
    elif synced and told.wrapper != "DistributedDataParallel" and row.world_size not in (None, 1):
        yield Trouble(
            f"{told.name} has SyncBatchNorm and is not wrapped in DistributedDataParallel",
            "convert first, wrap afterwards",
            "sync_batch_norm",
            certain=False,
        )
    if plain and told.wrapper == "DistributedDataParallel" and row.world_size not in (None, 1):
        words = " beside SyncBatchNorm in others" if synced else ""
        yield Trouble(
            f"{some(plain)}: BatchNorm takes its statistics from each process's own part of the batch{words}",
            "SyncBatchNorm.convert_sync_batchnorm(model) before wrapping, where parts are small",
            "batch_norm",
            certain=bool(synced),
        )
