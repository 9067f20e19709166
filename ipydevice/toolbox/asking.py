"""On which device things are, and whether they are together."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from contextlib import ExitStack
from types import FrameType, TracebackType
from typing import Any

import torch

from ipydevice import placement
from ipydevice.toolbox import accelerators
from ipydevice.toolbox.callers import argument_names
from ipydevice.toolbox.troubles import DeviceMismatchError, some

Placements = tuple[tuple[str, str], ...]  # names of tensors and their devices

_MOST_TENSORS = 200_000  # inside one object


def devices_of(obj: Any) -> tuple[torch.device, ...]:
    """The devices of every tensor in `obj`, each once, in the order in which they are met; () without a tensor.

    `obj` may be a tensor, module, optimizer, array, any nesting of containers, or an object that holds tensors.
    It is read and not run: no property, no iteration of a loader.
    """
    return tuple(torch.device(name) for name in placement.devices_of(obj) if name != placement.UNKNOWN)


def device_of(obj: Any) -> torch.device:
    """The one device on which `obj` is, as `devices_of` finds it.

    Raises:
        DeviceMismatchError: it is on several; the text says what is where.
        ValueError: no tensor is in it.
    """
    found = devices_of(obj)
    if not found:
        raise ValueError(f"an object of type {type(obj).__name__} with no tensor in it is on no device")
    if len(found) == 1:
        return found[0]
    placed = _placements("", obj)
    devices = dict.fromkeys(device for _, device in placed)
    if len(devices) == 1:
        return torch.device(next(iter(devices)))
    raise DeviceMismatchError(f"this {type(obj).__name__} is on {', '.join(devices)}: {_told(placed)}", placed)


def check_same_device(*objects: Any, **named: Any) -> torch.device | None:
    """The one device of all the objects given, or None where no tensor is in them.

    Names in the error come from the call as it is written: ``check_same_device(model, batch)`` says
    "model is on cuda:0, batch['mask'] on cpu"; keywords give names of their own. Step counters of an optimizer
    may be on the host, where PyTorch wants them.

    Raises:
        DeviceMismatchError: they are on several devices; `placements` has each tensor's name and device.
    """
    found = _met((*objects, *named.values()))
    if len(found) > 1:  # only now are names looked for, which takes fifty times as long
        placed = _all_placements(objects, named, sys._getframe(1))
        found = {device for _, device in placed}
        if len(found) > 1:
            raise DeviceMismatchError(f"not on one device: {_told(placed)}", placed)
    return torch.device(found.pop()) if found else None


class assert_on:  # noqa: N801  (used like a function)
    """For tests: everything is on `device`, the objects given and all that happens inside the ``with`` block.

    ``assert_on("cuda:0", model, batch)`` looks at the objects at once. ``with assert_on("cuda:0"): step()`` also
    fails for each tensor made or used elsewhere and for each call that mixes devices (`ipydevice.check` finds
    them all); as a decorator it does so for each call of a function. "cuda" is the current card.

    Raises:
        AssertionError: something is on another device; the text names each.
    """

    def __init__(self, device: Any, *objects: Any, **named: Any) -> None:
        self.device = str(accelerators.named(device))
        self._open: list[tuple[ExitStack, Any]] = []
        if _met((*objects, *named.values())) <= {self.device}:
            return
        placed = _all_placements(objects, named, sys._getframe(1))
        stray = tuple(pair for pair in placed if pair[1] != self.device)
        if stray:
            raise AssertionError(f"not on {self.device}: {_told(stray)}")

    def __enter__(self) -> assert_on:
        from ipydevice.devicecheck.check import check

        stack = ExitStack()
        self._open.append((stack, stack.enter_context(check(self.device))))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        stack, report = self._open.pop()
        stack.__exit__(kind, value, traceback)
        if value is None and not report.clean:
            raise AssertionError(f"not all on {self.device}\n{report}")

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def asserted(*args: Any, **kwargs: Any) -> Any:
            with self:
                return function(*args, **kwargs)

        return asserted


def _met(objects: tuple[Any, ...]) -> set[str]:
    """The devices of all tensors in the objects."""
    return {device for one in objects for device in placement.devices_of(one)} - {placement.UNKNOWN}


def _all_placements(objects: tuple[Any, ...], named: dict[str, Any], frame: FrameType) -> Placements:
    names = argument_names(frame, len(objects))
    pairs = [*zip(names, objects, strict=True), *named.items()]
    return tuple(placed for name, value in pairs for placed in _placements(name, value))


def _placements(name: str, obj: Any) -> Placements:
    """Names and devices of the tensors in `obj`, without those that PyTorch wants on the host."""
    if placement.is_array(obj):
        return ((name, placement.device_of(obj)),)
    with placement.quiet():
        found = [
            (name + one.path if name else one.path.removeprefix("."), placement.device_of(one.value))
            for one in placement.walk(obj, limit=_MOST_TENSORS, depth=64)
            if not _belongs_on_host(one)
        ]
    return tuple(pair for pair in found if pair[1] != placement.UNKNOWN)


def _belongs_on_host(found: placement.Found) -> bool:
    """An optimizer's step counters, and the batch sizes of a packed sequence for cuDNN."""
    counter = found.via == "state" and found.attribute.endswith("['step']")
    return counter or found.path.rpartition(".")[2] == "batch_sizes"


def _told(placed: Placements) -> str:
    """ "model.weight and 3 more on cuda:0, x on cpu", the most frequent device first."""
    by_device: dict[str, list[str]] = {}
    for name, device in placed:
        by_device.setdefault(device, []).append(name or "the tensor")
    ordered = sorted(by_device.items(), key=lambda item: -len(item[1]))
    return ", ".join(f"{some(names, 3 if i else 1)} on {device}" for i, (device, names) in enumerate(ordered))
