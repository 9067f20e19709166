"""Waits that are no call on a tensor: ``torch.cuda.synchronize()``, and those for a stream or an event.

A mode of torch sees calls on tensors, so these few are replaced while a check is open.  What C++ does inside of a
call, such as autograd in ``backward`` or NCCL, passes neither way.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

import torch

from ipydevice.devicecheck.replacing import Replaced
from ipydevice.devicecheck.watched import Facts, Watched
from ipydevice.language import say

Tell = Callable[[Watched, Facts, FrameType], None]

_BACKENDS = ("cuda", "xpu", "mps")


class Waits:
    """While it is open, whoever waits for a device, a stream or an event is told of."""

    def __init__(self, tell: Tell) -> None:
        self._tell = tell
        self._replaced = [_wait(owner, name, watched, tell) for owner, name, watched in _places()]

    def close(self) -> None:
        """Put back what was there."""
        for each in reversed(self._replaced):
            each.close()


def _places() -> Iterator[tuple[Any, str, Watched]]:
    """(owner, name, what the report calls it) of what waits."""
    for backend in _BACKENDS:
        module = getattr(torch, backend, None)
        if hasattr(module, "synchronize"):
            yield module, "synchronize", Watched(f"torch.{backend}.synchronize()")
        for kind in ("Stream", "Event"):
            cls = getattr(module, kind, None)
            if isinstance(cls, type) and "synchronize" in vars(cls):  # not where a build has no such backend
                yield cls, "synchronize", Watched(f"{kind}.synchronize()")
    if hasattr(torch, "accelerator"):  # since 2.6
        yield torch.accelerator, "synchronize", Watched("torch.accelerator.synchronize()")


def _wait(owner: Any, name: str, watched: Watched, tell: Tell) -> Replaced:
    backend = getattr(owner, "__name__", "").split(".")[-1]

    def make(replaced: Replaced) -> Any:
        def wait(*args: Any, **kwargs: Any) -> Any:
            result = replaced.before(*args, **kwargs)
            if replaced.is_open:
                device = _device(backend, args, kwargs)
                tell(watched, Facts("sync", device, "cpu", None, 0), sys._getframe(1))
            return result

        return wait

    return Replaced(owner, name, make)


def _device(backend: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
    """What was waited for: as given, that of a stream or event, or the current one."""
    given = kwargs.get("device", args[0] if args else None)
    if backend in ("Stream", "Event"):  # of torch's own, and never bound to more than one device
        given, backend = getattr(given, "device", None), type(given).__module__.split(".")[1]
        backend = backend if backend in _BACKENDS else "cuda"
    if type(given) is int:
        return f"{backend}:{given}"
    if given is not None:
        return str(given)
    if backend == "accelerator":
        current = torch.accelerator.current_accelerator()
        return say("the accelerator") if current is None else str(current)
    if backend == "mps":
        return "mps:0"
    return f"{backend}:{getattr(torch, backend).current_device()}"
