"""Random number generators with a device.

All of them draw from the host's engine, so that the same seed gives the numbers of a plain CPU run; the default
generators of all cards and of the host are one stream.
"""

from __future__ import annotations

import functools
from typing import Any

import torch

from ipydevice.virtual import cards, texts
from ipydevice.virtual.patches import Patches
from ipydevice.virtual.tags import device_of

_devices: dict[int, torch.device] = {}
"""C++ generator -> card.  An operator hands us another Python object for the same C++ generator."""


def generator_device(generator: Any) -> torch.device:
    return _devices.get(generator._cdata, cards.CPU)


def check_generator(generator: Any, device: torch.device) -> None:
    found = generator_device(generator)
    if found.type != device.type:
        raise texts.wrong_generator(device, found)


def check_state(state: Any) -> None:
    """ATen/core/Generator.h: check_rng_state; every generator keeps its state on the host"""
    if isinstance(state, torch.Tensor) and (device_of(state) != cards.CPU or state.dtype is not torch.uint8):
        raise TypeError("RNG state must be a torch.ByteTensor")


def set_host_state(new_state: Any) -> None:
    """``torch.set_rng_state``"""
    check_state(new_state)
    torch.default_generator.set_state(new_state)


class _GeneratorType(type(torch._C.Generator)):  # type: ignore[misc]
    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, torch._C.Generator)


_Generator: Any = torch._C.Generator


class VirtualGenerator(_Generator, metaclass=_GeneratorType):  # type: ignore[misc]
    """Stands in for ``torch.Generator``."""

    def __new__(cls, device: Any = "cpu") -> VirtualGenerator:
        where = cards.resolve(device) if cards.process.count else torch.device(device)
        made: VirtualGenerator = _Generator.__new__(cls, device=cards.CPU if where.type == "cuda" else where)
        if where.type == "cuda":
            _devices[made._cdata] = where
        return made

    def __init__(self, device: Any = "cpu") -> None:
        pass

    def __del__(self) -> None:
        _devices.pop(self._cdata, None)

    @property
    def device(self) -> torch.device:
        return generator_device(self)

    def set_state(self, new_state: Any) -> VirtualGenerator:
        check_state(new_state)
        made: VirtualGenerator = super().set_state(new_state)
        return made


VirtualGenerator.__name__ = VirtualGenerator.__qualname__ = "Generator"


def install(patches: Patches) -> None:
    patches.replace(torch, "Generator", VirtualGenerator)
    entry = functools.wraps(torch.set_rng_state)(set_host_state)
    for module in (torch, torch.random):
        patches.replace(module, "set_rng_state", entry)
