"""From a failed notebook cell to a running one.

In a notebook: ``%load_ext ipydevice``.  In a script or a debugger: ``ipydevice.explain()``.
Importing this module loads nothing else: neither torch nor widgets.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ipydevice.devicecheck.check import check as check
    from ipydevice.diagnosis import Diagnosis as Diagnosis
    from ipydevice.diagnosis import Fix as Fix
    from ipydevice.diagnosis import Inventory as Inventory
    from ipydevice.excepthooks import install as install
    from ipydevice.ranks.debug import debug_ddp as debug_ddp
    from ipydevice.ranks.files import write_rank_report as write_rank_report
    from ipydevice.session import explain as explain
    from ipydevice.session import inventory as inventory
    from ipydevice.toolbox.amp import amp_check as amp_check
    from ipydevice.toolbox.asking import assert_on as assert_on
    from ipydevice.toolbox.asking import check_same_device as check_same_device
    from ipydevice.toolbox.asking import device_of as device_of
    from ipydevice.toolbox.asking import devices_of as devices_of
    from ipydevice.toolbox.choosing import get_device as get_device
    from ipydevice.toolbox.current import DeviceContext as DeviceContext
    from ipydevice.toolbox.finite import nan_watch as nan_watch
    from ipydevice.toolbox.gradients import check_gradient_devices as check_gradient_devices
    from ipydevice.toolbox.moving import to_device as to_device
    from ipydevice.toolbox.numbering import device_map as device_map
    from ipydevice.toolbox.snapshot import device_snapshot as device_snapshot
    from ipydevice.toolbox.timeline import device_timeline as device_timeline
    from ipydevice.toolbox.tracker import TensorTracker as TensorTracker
    from ipydevice.toolbox.troubles import DeviceMismatchError as DeviceMismatchError
    from ipydevice.toolbox.watermark import memory_watermark as memory_watermark
    from ipydevice.virtual import virtual_gpus as virtual_gpus

__version__ = "0.1.0"

_HOMES = {
    "check": "ipydevice.devicecheck.check",
    "explain": "ipydevice.session",
    "install": "ipydevice.excepthooks",
    "inventory": "ipydevice.session",
    "virtual_gpus": "ipydevice.virtual",
    "Diagnosis": "ipydevice.diagnosis",
    "Fix": "ipydevice.diagnosis",
    "Inventory": "ipydevice.diagnosis",
    "DeviceContext": "ipydevice.toolbox.current",
    "TensorTracker": "ipydevice.toolbox.tracker",
    "amp_check": "ipydevice.toolbox.amp",
    "assert_on": "ipydevice.toolbox.asking",
    "check_gradient_devices": "ipydevice.toolbox.gradients",
    "check_same_device": "ipydevice.toolbox.asking",
    "device_map": "ipydevice.toolbox.numbering",
    "device_of": "ipydevice.toolbox.asking",
    "device_snapshot": "ipydevice.toolbox.snapshot",
    "device_timeline": "ipydevice.toolbox.timeline",
    "devices_of": "ipydevice.toolbox.asking",
    "get_device": "ipydevice.toolbox.choosing",
    "memory_watermark": "ipydevice.toolbox.watermark",
    "nan_watch": "ipydevice.toolbox.finite",
    "to_device": "ipydevice.toolbox.moving",
    "DeviceMismatchError": "ipydevice.toolbox.troubles",
    "debug_ddp": "ipydevice.ranks.debug",
    "write_rank_report": "ipydevice.ranks.files",
}

__all__ = [*_HOMES, "__version__"]


def __getattr__(name: str) -> Any:
    """Look a public name up when it is first used."""
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'ipydevice' has no attribute {name!r}")
    return getattr(importlib.import_module(home), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})


def load_ipython_extension(shell: Any) -> None:
    """Called by ``%load_ext ipydevice``."""
    from ipydevice import hook, magics, settings
    from ipydevice.devicecheck import magic

    settings.register(shell)
    magics.register(shell)
    magic.register(shell)
    hook.load(shell)


def unload_ipython_extension(shell: Any) -> None:
    """Called by ``%unload_ext ipydevice``; what others have hung in since stays."""
    from ipydevice import hook, magics, settings
    from ipydevice.devicecheck import magic

    magic.unregister(shell)
    hook.unload(shell)
    magics.unregister(shell)
    settings.unregister(shell)
