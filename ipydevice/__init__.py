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
    from ipydevice.session import explain as explain
    from ipydevice.session import inventory as inventory
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
    from ipydevice import hook, magics
    from ipydevice.devicecheck import magic

    magics.register(shell)
    magic.register(shell)
    hook.load(shell)


def unload_ipython_extension(shell: Any) -> None:
    """Called by ``%unload_ext ipydevice``; what others have hung in since stays."""
    from ipydevice import hook, magics
    from ipydevice.devicecheck import magic

    magic.unregister(shell)
    hook.unload(shell)
    magics.unregister(shell)
