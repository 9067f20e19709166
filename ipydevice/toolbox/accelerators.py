"""The accelerator of this process and the questions that its torch module answers, whichever kind it is."""

from __future__ import annotations

from typing import Any

import torch

HOSTS = ("cpu", "meta")
_KINDS = ("cuda", "xpu", "hpu", "npu", "mps")  # asked in this order where torch.accelerator (2.6) does not tell


def kind() -> str | None:
    """Type of the accelerator that this process can use: "cuda", "mps", a private backend's name; None without one."""
    accelerator = getattr(torch, "accelerator", None)
    if accelerator is not None and accelerator.is_available():
        return str(accelerator.current_accelerator().type)
    return next((name for name in _KINDS if ask(name, "is_available")), None)


def module_of(kind: str) -> Any:
    """``torch.cuda``, ``torch.xpu``, ...; None for the host and for kinds without a module."""
    return None if kind in HOSTS else getattr(torch, kind, None)


def ask(kind: str, question: str, *arguments: Any) -> Any:
    """What ``torch.<kind>.<question>(...)`` answers; None where there is no such question or it is refused."""
    function = getattr(module_of(kind), question, None)
    if not callable(function):
        return None
    try:
        return function(*arguments)
    except Exception:  # noqa: BLE001 (drivers refuse with errors of their own)
        return None


def count(kind: str) -> int:
    """Number of devices of a kind; one where it does not tell, as MPS before 2.7."""
    found = ask(kind, "device_count")
    return found if type(found) is int else 1


def in_use(kind: str) -> bool:
    """Whether the kind's driver has been started in this process; kinds that do not tell have no cost of starting."""
    return ask(kind, "is_initialized") is not False


def current(kind: str) -> int:
    """Index of this thread's current device; asking starts nothing."""
    found = ask(kind, "current_device") if in_use(kind) else 0
    return found if type(found) is int else 0


def named(device: Any) -> torch.device:
    """A device with its index: "cuda" is the current card, an int a card of this process's accelerator.

    Raises:
        TypeError: `device` is neither a name, nor an int, nor a `torch.device`.
        ValueError: PyTorch knows no such device.
    """
    if isinstance(device, torch.device):
        found = device
    elif isinstance(device, int) and not isinstance(device, bool):
        found = torch.device(kind() or "cuda", device)
    elif isinstance(device, str):
        try:
            found = torch.device(device)
        except RuntimeError as error:
            raise ValueError(f'expected a device such as "cuda:0", "mps" or "cpu", got {device!r}: {error}') from None
    else:
        raise TypeError(f'expected a device such as "cuda:0", got an object of type {type(device).__name__}')
    index: int | None = found.index
    return torch.device(found.type, current(found.type)) if index is None and found.type not in HOSTS else found


def allocated(kind: str, index: int) -> int | None:
    """Bytes that this process's tensors take on a device; None where the kind does not tell."""
    return _bytes(kind, index, "memory_allocated", "current_allocated_memory")


def reserved(kind: str, index: int) -> int | None:
    """Bytes that torch's cache holds on a device, those of tensors included."""
    return _bytes(kind, index, "memory_reserved", "driver_allocated_memory")


def peak(kind: str, index: int) -> int | None:
    """Most bytes that tensors have taken so far, or since the user's ``reset_peak_memory_stats``."""
    return _bytes(kind, index, "max_memory_allocated", "")


def total(kind: str, index: int) -> int | None:
    """Bytes of the whole device."""
    if kind == "mps":
        return _bytes(kind, index, "", "recommended_max_memory")
    found = getattr(ask(kind, "get_device_properties", index), "total_memory", None)
    return found if type(found) is int else None


def _bytes(kind: str, index: int, question: str, of_mps: str) -> int | None:
    """MPS has one device, and names of its own for its questions (torch/mps)."""
    found = ask(kind, of_mps) if kind == "mps" else ask(kind, question, index)
    return found if type(found) is int else None
