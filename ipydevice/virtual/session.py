"""Switching virtual GPUs on and off."""

from __future__ import annotations

import functools
import threading
from typing import Any

import torch
from torch.jit import _builtins
from torch.utils import _device as device_contexts
from torch.utils._python_dispatch import _get_current_dispatch_mode_stack, _pop_mode, _push_mode

from ipydevice.virtual import (
    attributes,
    autocasting,
    cards,
    compositions,
    cuda_api,
    factories,
    generators,
    gradients,
    legacy_types,
    moving,
    operators,
    parallel,
    profiling,
    scripts,
    storages,
    synchronised,
    tracebacks,
    unsupported,
)
from ipydevice.virtual.mode import VirtualDevices
from ipydevice.virtual.patches import Patches
from ipydevice.virtual.tags import memory

_ROOMS = (
    storages,
    synchronised,
    attributes,
    moving,
    legacy_types,
    factories,
    generators,
    operators,
    compositions,
    gradients,
    autocasting,
    cuda_api,
    parallel,
    profiling,
    tracebacks,
    scripts,
    unsupported,
)

_script_table: Any = _builtins._get_builtin_table

_default_device: Any = getattr(torch, "_GLOBAL_DEVICE_CONTEXT", None)

_counts: list[int] = []  # one for each enable() that is not undone yet
_lock = threading.RLock()
_patches = Patches()


def count() -> int:
    return cards.process.count


def push(n: int) -> None:
    with _lock:
        if not _counts:
            _install()
        _counts.append(n)
        cards.process.count = n


def pop() -> None:
    with _lock:
        _counts.pop()
        cards.process.count = _counts[-1] if _counts else 0
        if not _counts:
            _uninstall()


def patched() -> list[tuple[Any, str]]:
    """The attributes of PyTorch that are replaced now."""
    return [(owner, name) for owner, name, _ in _patches.originals()]


def _install() -> None:
    if torch.cuda.is_available():
        raise RuntimeError(
            f"this PyTorch has {torch.cuda.device_count()} real CUDA device(s): virtual GPUs stand in for cards that "
            "a machine does not have; run with CUDA_VISIBLE_DEVICES='' to rehearse here"
        )
    try:
        for room in _ROOMS:
            room.install(_patches)
        thread: Any = threading.Thread
        _patches.replace(thread, "_bootstrap_inner", _bootstrap(thread._bootstrap_inner))
    except BaseException:
        _patches.restore()
        raise
    _forget_names()
    _teach_scripts()
    VirtualDevices().__enter__()


def _uninstall() -> None:
    for used in memory.values():
        used.peak = used.now
    _leave_default_device()
    _leave_mode()
    _unteach_scripts()
    _patches.restore()
    _forget_names()
    cards.process.owner = None


def _leave_default_device() -> None:
    """A default device that is a virtual card would make every later `torch.ones(2)` fail."""
    context = getattr(_default_device, "device_context", None)
    if context is not None and context.device.type == "cuda":
        torch.set_default_device(None)


def _leave_mode() -> None:
    """Take our mode off the stack of this thread, from under modes that were entered later."""
    above = []
    while _get_current_dispatch_mode_stack():
        mode = _get_current_dispatch_mode_stack()[-1]
        if isinstance(mode, VirtualDevices):
            mode.__exit__(None, None, None)
            break
        above.append(_pop_mode())
    for mode in reversed(above):
        _push_mode(mode)


def _forget_names() -> None:
    """PyTorch keeps sets of its own functions; let it look them up anew."""
    device_contexts._device_constructors.cache_clear()
    for name in (
        *("get_ignored_functions", "get_default_nowrap_functions", "get_testing_overrides"),
        *("_get_overridable_functions", "_get_tensor_methods"),
    ):
        cached: Any = getattr(torch.overrides, name, None)
        if hasattr(cached, "cache_clear"):
            cached.cache_clear()


_scripted: list[int] = []  # ids that were added to TorchScript's table


def _teach_scripts() -> None:
    """TorchScript knows PyTorch's functions by identity: let it know our entry points by the same names."""
    table: dict[int, str] = _script_table()
    for owner, name, original in _patches.originals():
        entry = getattr(owner, name)
        if id(original) in table and id(entry) not in table:
            table[id(entry)] = table[id(original)]
            _scripted.append(id(entry))


def _unteach_scripts() -> None:
    table: dict[int, str] = _script_table()
    while _scripted:
        table.pop(_scripted.pop(), None)


def _bootstrap(original: Any) -> Any:
    """Modes belong to a thread.  (`run` is what users override, and they call no `super().run()`.)"""

    @functools.wraps(original)
    def bootstrap(self: threading.Thread) -> None:
        if not cards.process.count:
            original(self)
            return
        with VirtualDevices():
            original(self)

    return bootstrap
