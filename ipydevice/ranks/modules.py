"""The modules of one process: which they are, what wraps them, and what is in them. Read, never called."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import torch

from ipydevice import placement
from ipydevice.placement import FactReader, Facts
from ipydevice.placement.kinds import class_name
from ipydevice.placement.members import dotted, table_of
from ipydevice.ranks.report import ModelRow

_MOST_MODELS = 8  # of a workspace

_subclass = type.__subclasscheck__


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
    inside = {id(part) for value in found.values() for path, part in modules_of(value) if path}
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
    return {f"{name}{path}": what for name, model in models.items() for path, what in _described(facts_of(model))}


def _described(facts: Iterable[tuple[str, bool, Facts]]) -> Iterator[tuple[str, str]]:
    for path, is_parameter, fact in facts:
        trained = " trained" if is_parameter and fact.requires_grad else ""
        yield path, f"{fact.dtype}{list(fact.shape or ())}{trained}"


def facts_of(model: Any) -> list[tuple[str, bool, Facts]]:
    """Of each parameter and buffer its path, whether it is a parameter, and its facts."""
    reader = FactReader()
    with placement.quiet():
        return [(path, placement.is_parameter(tensor), reader.facts(tensor)) for path, tensor in tensors_of(model)]


def modules_of(root: Any) -> Iterator[tuple[str, Any]]:
    """A module and those inside it, each once, with their paths; nothing of the user's runs."""
    seen = {id(root)}
    waiting = [("", root)]
    for path, module in waiting:
        yield path, module
        for name, value in table_of(module, "_modules"):
            if placement.is_module(value) and id(value) not in seen:
                seen.add(id(value))
                waiting.append((path + dotted(name), value))


def tensors_of(model: Any) -> Iterator[tuple[str, Any]]:
    """Parameters and buffers, each once, with their paths in the module that a wrapper holds."""
    seen: set[int] = set()
    for path, module in modules_of(inner_of(model)):
        for table in ("_parameters", "_buffers"):
            for name, value in table_of(module, table):
                if value is not None and id(value) not in seen:
                    seen.add(id(value))
                    yield path + dotted(name), value


def row_of(name: str, model: Any) -> ModelRow:
    facts = facts_of(model)
    devices: dict[str, int] = {}
    for _, _, fact in facts:
        devices[fact.device] = devices.get(fact.device, 0) + fact.bytes
    told = "\n".join(f"{path} {what}" for path, what in _described(facts))
    digest = hashlib.sha256(told.encode()).hexdigest()[:12]
    kind = class_name(type(inner_of(model)))
    return ModelRow(name, kind, devices, len(facts), digest, wrapper_of(model))
