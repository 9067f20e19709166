"""Which virtual cards there are, which one is current, and how a device is named.

The rules are those of ``torch.cuda``: `None` and plain ``"cuda"`` mean the current card of this thread, an int is a
card, a card that does not exist is refused in CUDA's words, and a forked child may not touch cards that its parent
has used.
"""

from __future__ import annotations

import functools
import os
import threading
from typing import Any

import torch

CPU = torch.device("cpu")
TOTAL_MEMORY = 8 << 30  # bytes that each card pretends to have

_INVALID_ORDINAL = (
    "CUDA error: invalid device ordinal\n"
    "GPU device may be out of range, do you have enough GPUs?\n"
    "CUDA kernel errors might be asynchronously reported at some other API call, so the stacktrace below might be "
    "incorrect.\n"
    "For debugging consider passing CUDA_LAUNCH_BLOCKING=1\n"
    "Compile with `TORCH_USE_CUDA_DSA` to enable device-side assertions.\n"
)
_BAD_FORK = (
    "Cannot re-initialize CUDA in forked subprocess. To use CUDA with multiprocessing, you must use the 'spawn' "
    "start method"
)


class _PerThread(threading.local):
    current = 0
    refused = ""  # the words of the last error of an operator
    factory_depth = 0  # > 0 inside a factory that the user called: what it makes is no operator's intermediate


class _Process:
    """What the whole process shares."""

    count = 0  # number of cards; 0 while virtual GPUs are off
    owner: int | None = None  # the process that first used a card; its forked children may not


thread = _PerThread()
process = _Process()


def invalid_ordinal() -> Exception:
    # torch.AcceleratorError came with 2.8; before, CUDA errors were plain RuntimeErrors
    return getattr(torch, "AcceleratorError", RuntimeError)(_INVALID_ORDINAL)


def in_bad_fork() -> bool:
    return process.owner is not None and process.owner != os.getpid()


def initialise() -> None:
    """The first use of a card in this process: `torch.cuda._lazy_init`."""
    if process.owner is None:
        process.owner = os.getpid()
    elif process.owner != os.getpid():
        raise RuntimeError(_BAD_FORK)


def current() -> int:
    return thread.current if thread.current < process.count else 0


@functools.cache
def card(index: int) -> torch.device:
    with torch._C.DisableTorchFunction():
        return torch.device("cuda", index)


def resolve(device: Any) -> torch.device:
    """The device that `device` (str, int or torch.device) names, with an index where it is a card.

    Raises:
        AcceleratorError: there is no such card (RuntimeError before torch 2.8).
        RuntimeError: a card, in a process forked from one that has used cards.
    """
    if isinstance(device, int) and not isinstance(device, bool):
        found = card(device)
    elif isinstance(device, torch.device):
        found = device
    else:
        with torch._C.DisableTorchFunction():  # a mode is not to see a call that is ours
            found = torch.device(device)
    if found.type != "cuda":
        return found
    index = current() if found.index is None else found.index
    if index >= process.count:
        raise invalid_ordinal()
    initialise()
    return found if found.index is not None else card(index)


def index_of(device: Any, *, optional: bool = True) -> int:
    """The card number that an argument of a ``torch.cuda`` function means; `None` is the current card."""
    if device is None and optional:
        return current()
    found = resolve(device)
    if found.type != "cuda":
        raise ValueError(f"Expected a cuda device, but got: {found}")
    return int(found.index)
