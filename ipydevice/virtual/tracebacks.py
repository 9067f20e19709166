"""Errors that PyTorch writes down as text in another thread or process, before any hook could trim them."""

from __future__ import annotations

import functools
import sys
from typing import Any

import torch

from ipydevice.virtual import trim_traceback
from ipydevice.virtual.patches import Patches


def install(patches: Patches) -> None:
    wrapper: Any = torch._utils.ExceptionWrapper  # DataLoader workers, replicas of DataParallel
    original = wrapper.__init__

    @functools.wraps(original)
    def init(self: Any, exc_info: Any = None, where: str = "in background") -> None:
        kind, value, traceback = sys.exc_info() if exc_info is None else exc_info
        if isinstance(value, BaseException):
            trim_traceback(value)
            traceback = value.__traceback__
        original(self, (kind, value, traceback), where)

    patches.replace(wrapper, "__init__", init)
