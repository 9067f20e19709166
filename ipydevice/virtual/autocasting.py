"""``torch.autocast("cuda")``: CUDA's state and default dtype, with the CPU's autocast doing the work.

The CPU has no rule for a few operators that CUDA runs in float32; numbers are those of ``torch.autocast("cpu")``
with the same dtype.
"""

from __future__ import annotations

import functools
from typing import Any

import torch

from ipydevice.virtual.patches import Patches


def install(patches: Patches) -> None:
    enter: Any = torch.autocast.__enter__
    leave: Any = torch.autocast.__exit__

    @functools.wraps(enter)
    def entering(self: Any) -> Any:
        enter(self)
        if self.device == "cuda":
            self._host = torch.autocast("cpu", self.fast_dtype, self._enabled, self._cache_enabled)
            self._host.__enter__()
        return self

    @functools.wraps(leave)
    def leaving(self: Any, *error: Any) -> Any:
        host = self.__dict__.pop("_host", None)
        if host is not None:
            host.__exit__(*error)
        return leave(self, *error)

    patches.replace(torch.autocast, "__enter__", entering)
    patches.replace(torch.autocast, "__exit__", leaving)
