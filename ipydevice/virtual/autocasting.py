"""``torch.autocast("cuda")``: the CPU's autocast does the work, CUDA's default dtype applies."""

from __future__ import annotations

from typing import Any

import torch

from ipydevice.virtual.patches import Patches


def install(patches: Patches) -> None:
    original = torch.autocast.__init__

    def init(self: Any, device_type: str, dtype: Any = None, enabled: bool = True, cache_enabled: Any = None) -> None:
        if device_type != "cuda":
            original(self, device_type, dtype, enabled, cache_enabled)
            return
        original(self, "cpu", torch.get_autocast_dtype("cuda") if dtype is None else dtype, enabled, cache_enabled)

    patches.replace(torch.autocast, "__init__", init)
