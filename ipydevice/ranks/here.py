"""The row of this process. Metadata only: nothing is moved, run or waited for, and no driver is started."""

from __future__ import annotations

import hashlib
import os
import socket
import sys
import time
from collections.abc import Mapping
from typing import Any

import torch

from ipydevice import launchers, placement
from ipydevice.listing.odd import submodules
from ipydevice.placement.kinds import class_name
from ipydevice.ranks import alone
from ipydevice.ranks.report import CardMemory, ModelRow, RankRow
from ipydevice.toolbox import accelerators, numbering

_MOST_MODELS = 8  # of a workspace
_MOST_TENSORS = 200_000  # of one model

_subclass = type.__subclasscheck__


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
        card="" if kind is None else _card(kind, started),
        cards=0 if kind is None else accelerators.count(kind),
        visible=numbering.visible_devices(kind or "cuda"),
        models=tuple(_model(name, model) for name, model in models.items()),
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


def models_in(namespace: Mapping[str, Any]) -> dict[str, Any]:
    """The modules that a workspace names: those wrapped for several processes alone, where there are some.

    A module inside another one that is named is left out.
    """
    found = {
        name: value
        for name, value in list(namespace.items())
        if type(name) is str and not name.startswith("_") and placement.is_module(value)
    }
    wrapped = {name: value for name, value in found.items() if wrapper_of(value)}
    inside = {id(part) for value in found.values() for path, part in submodules(value) if path}
    chosen = wrapped or {name: value for name, value in found.items() if id(value) not in inside}
    return dict(list(chosen.items())[:_MOST_MODELS])


def wrapper_of(module: Any) -> str:
    """The class that spreads a module over processes or cards, or ""."""
    of_sharding = sys.modules.get("torch.distributed.fsdp")
    kinds = {
        "DistributedDataParallel": torch.nn.parallel.DistributedDataParallel,
        "DataParallel": torch.nn.DataParallel,
        "FullyShardedDataParallel": getattr(of_sharding, "FullyShardedDataParallel", None),
        "FSDPModule": getattr(of_sharding, "FSDPModule", None),
    }
    cls = type(module)
    return next((name for name, kind in kinds.items() if kind is not None and _subclass(kind, cls)), "")


def inner_of(module: Any) -> Any:
    """The module inside a wrapper that is a module of its own; else the module itself."""
    if wrapper_of(module) not in ("DistributedDataParallel", "DataParallel"):
        return module
    return next((one.value for one in placement.members(module) if one.via == "module"), module)


def parameters_of(models: Mapping[str, Any]) -> dict[str, str]:
    """Every parameter and buffer with its type and shape: what has to be equal on all ranks."""
    told = {}
    for name, model in models.items():
        for path, tensor in _tensors(model):
            shape = placement.shape_of(tensor)
            trained = " trained" if placement.is_parameter(tensor) and tensor.requires_grad else ""
            told[f"{name}{path}"] = f"{placement.dtype_of(tensor)}{list(shape or ())}{trained}"
    return told


def _tensors(model: Any) -> list[tuple[str, Any]]:
    """Parameters and buffers with their paths as the module inside a wrapper has them; nothing of the user's runs."""
    with placement.quiet():
        found = placement.walk(inner_of(model), limit=_MOST_TENSORS, depth=64)
        return [(one.path, one.value) for one in found if one.via in ("parameter", "buffer")]


def _model(name: str, model: Any) -> ModelRow:
    devices: dict[str, int] = {}
    tensors = _tensors(model)
    for _, tensor in tensors:
        device = placement.device_of(tensor)
        devices[device] = devices.get(device, 0) + placement.bytes_of(tensor)
    told = parameters_of({"": model})
    digest = hashlib.sha256("\n".join(f"{path} {what}" for path, what in told.items()).encode()).hexdigest()[:12]
    kind = class_name(type(inner_of(model)))
    return ModelRow(name, kind, devices, len(tensors), digest, wrapper_of(model))


def _card(kind: str, started: bool) -> str:
    """Which card the current device is, the same for all processes of a host that are on it."""
    index = accelerators.current(kind)
    if started:
        device = numbering.device_map()[index]
        return device.uuid or device.physical
    visible = numbering.visible_devices(kind)
    entries = [str(index)] if visible is None else numbering.entries_of(visible)
    return entries[index] if visible is not None and index < len(entries) else str(index)


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
