"""Storages on cards: their device, copies of them, and what saving and loading needs of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from ipydevice.virtual import cards
from ipydevice.virtual.patches import Patches
from ipydevice.virtual.tags import ANY, TAG, tag_storage

Storage: Any = torch.UntypedStorage
_base: Any = torch._C.StorageBase
_true_device: Callable[[Any], torch.device] = _base.device.__get__
_to = torch.storage._StorageBase.to
_clone: Any = torch.storage._StorageBase.clone


def device_of_storage(self: Any) -> torch.device:
    found: torch.device | None = self._virtual_device
    return _true_device(self) if found is None or found is ANY else found


def _copy(self: Any) -> Any:
    return Storage(self.nbytes()).copy_(self)


def clone(self: Any) -> Any:
    if self._virtual_device is None:
        return _clone(self)
    copied = _copy(self)
    tag_storage(copied, self._virtual_device)
    return copied


def to(self: Any, *, device: Any, non_blocking: bool = False) -> Any:
    target = cards.resolve(device)
    if device_of_storage(self) == target:
        return self
    if target.type not in ("cuda", "cpu"):
        return _to(self, device=target, non_blocking=non_blocking)
    copied = _copy(self)
    tag_storage(copied, target)
    return copied


def install(patches: Patches) -> None:
    patches.replace(Storage, TAG, None)  # what a storage without a tag answers
    patches.replace(Storage, "device", property(device_of_storage))
    patches.replace(Storage, "to", to)
    patches.replace(Storage, "clone", clone)
