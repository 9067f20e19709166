"""``torch.profiler``: what runs on a virtual card is CPU work, and is profiled as such."""

from __future__ import annotations

import functools
from typing import Any

import torch

from ipydevice.virtual.patches import Patches


def install(patches: Patches) -> None:
    profile: Any = torch.autograd.profiler.profile
    original = profile.__init__

    @functools.wraps(original)
    def init(self: Any, *args: Any, **kwargs: Any) -> None:
        if kwargs.get("use_device") == "cuda":
            kwargs["use_device"] = None  # CUPTI would report a failure for each operator
        original(self, *args, **kwargs)

    patches.replace(profile, "__init__", init)
