"""The current device of a thread, for a while."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from types import TracebackType
from typing import Any

import torch

from ipydevice.toolbox import accelerators


class DeviceContext:
    """``with DeviceContext("cuda:1"):`` makes it the current device, and brings back the former one afterwards.

    One object may be used by many threads, nested and again (`torch.cuda.device` keeps one former device and
    restores a wrong one then): the current device belongs to a thread, and so does what is restored. It is also a
    decorator. Kinds without a current device (cpu, mps, meta) change nothing. New tensors go there only by
    ``device="cuda"`` or ``.cuda()``; for all others there is ``with torch.device(...)``.

    Raises:
        ValueError, TypeError: `device` names no device.
    """

    def __init__(self, device: Any) -> None:
        self.device = accelerators.named(device)
        self._thread = threading.local()

    def __enter__(self) -> torch.device:
        kind = getattr(accelerators.module_of(self.device.type), "device", None)
        former = None if kind is None else kind(self.device)
        if former is not None:
            former.__enter__()
        self._formers().append(former)
        return self.device

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        former = self._formers().pop()
        if former is not None:
            former.__exit__(kind, value, traceback)

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def there(*args: Any, **kwargs: Any) -> Any:
            with self:
                return function(*args, **kwargs)

        return there

    def _formers(self) -> list[Any]:
        stack = getattr(self._thread, "formers", None)
        if stack is None:
            stack = self._thread.formers = []
        found: list[Any] = stack
        return found
