"""Where a tensor lives: a tag on its storage.

Every tensor stays a plain CPU tensor.  The storage carries the device, so whatever shares memory (views, `detach`,
parameters made from tensors, saved tensors, `x.data = y`) shares the device too, exactly as on a real card.  PyTorch
keeps the Python object of a storage, and its attributes, as long as the storage lives.
Layouts without a storage (sparse) carry the tag themselves.
"""

from __future__ import annotations

from typing import Any

import torch

from ipydevice.virtual.cards import CPU

Tensor = torch.Tensor
storage_of = torch._C.TensorBase.untyped_storage
true_device = torch._C.TensorBase.device.__get__  # the C++ device: cpu, or meta
_storage_base: Any = torch._C.StorageBase
_storage_device = _storage_base.device.__get__
_is_wrapped = torch._C._functorch.is_functorch_wrapped_tensor
_unwrapped = torch._C._functorch.get_unwrapped

TAG = "_virtual_device"
LEASE = "_virtual_bytes"

ANY = torch.device("lazy")
"""The tag of what an operator made for itself, in C++, before it met another tensor: it takes the device of what it
meets first.  This can hide a mismatch and never invents one."""


class Memory:
    """Bytes on one card, counted from the storages that are alive."""

    def __init__(self) -> None:
        self.now = 0
        self.peak = 0
        self.total = 0
        self.blocks = 0


memory: dict[torch.device, Memory] = {}


class _Lease:
    """The bytes that a storage holds on a card, given back when the storage dies."""

    __slots__ = ("nbytes", "owner")

    def __init__(self, device: torch.device, nbytes: int) -> None:
        owner = memory.get(device)
        if owner is None:
            owner = memory[device] = Memory()
        # the caching allocator of CUDA hands out blocks of 512 bytes
        self.nbytes = -(-nbytes // 512) * 512
        self.owner = owner
        owner.now += self.nbytes
        owner.total += self.nbytes
        owner.blocks += 1
        if owner.now > owner.peak:
            owner.peak = owner.now

    def __del__(self) -> None:
        self.owner.now -= self.nbytes
        self.owner.blocks -= 1


def tag_storage(storage: Any, device: torch.device) -> None:
    """Say that this storage lives on `device`: a card, the host, or ANY."""
    if device.type == "cuda":
        storage._virtual_device = device
        storage._virtual_bytes = _Lease(device, storage.nbytes())
    elif device is ANY:
        storage._virtual_device = ANY
    elif storage._virtual_device is not None:
        storage.__dict__.pop(TAG, None)
        storage.__dict__.pop(LEASE, None)


def bare(tensor: Tensor) -> Tensor:
    """The tensor under the wrappers of ``torch.func`` and ``vmap``."""
    while _is_wrapped(tensor):
        tensor = _unwrapped(tensor)
    return tensor


def raw_tag(tensor: Tensor) -> torch.device | None:
    """The tag itself: a card, ANY, or None (no tag: the device is the C++ one)."""
    try:
        return storage_of(tensor)._virtual_device  # type: ignore[attr-defined, no-any-return]
    except (NotImplementedError, RuntimeError):
        if _is_wrapped(tensor):
            return raw_tag(bare(tensor))
        return tensor.__dict__.get(TAG)


def tag(tensor: Tensor, device: torch.device) -> Tensor:
    """Say that `tensor`, and all that shares its memory, lives on `device`.  A meta tensor is left as it is."""
    try:
        storage = storage_of(tensor)
    except (NotImplementedError, RuntimeError):
        if _is_wrapped(tensor):
            tag(bare(tensor), device)
        elif device.type == "cuda":
            tensor.__dict__[TAG] = device
        else:
            tensor.__dict__.pop(TAG, None)
        return tensor
    if _storage_device(storage).type == "cpu":
        tag_storage(storage, device)
    return tensor


def device_of(tensor: Tensor) -> torch.device:
    """Where the tensor lives, as a user sees it."""
    found = raw_tag(tensor)
    return true_device(tensor) if found is None or found is ANY else found


def ruled_device(tensor: Tensor) -> torch.device | None:
    """Where the tensor lives, for the rules; None: nowhere yet."""
    found = raw_tag(tensor)
    if found is None:
        return true_device(tensor)
    return None if found is ANY else found


def on_card(tensor: Tensor) -> bool:
    found = raw_tag(tensor)
    return found is not None and found is not ANY


__all__ = [
    "ANY",
    "CPU",
    "device_of",
    "memory",
    "on_card",
    "raw_tag",
    "ruled_device",
    "storage_of",
    "tag",
    "true_device",
]
