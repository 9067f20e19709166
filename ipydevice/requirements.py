"""Which PyTorch is here, and a clear word when it is missing or too old."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import re
import sys

from ipydevice.language import say

OLDEST_TORCH = (2, 4)


def torch_trouble() -> str | None:
    """Why ipydevice cannot work with the PyTorch of this environment, or None. Imports nothing."""
    needed = ".".join(map(str, OLDEST_TORCH))
    version = _torch_version()
    if version is None:
        return say(
            "PyTorch is not installed in this environment; ipydevice needs {needed} or newer: pip install torch",
            needed=needed,
        )
    numbers = tuple(int(digits) for digits in re.findall(r"\d+", version)[:2])
    if numbers and numbers < OLDEST_TORCH:
        return say(
            "ipydevice needs PyTorch {needed} or newer, and this is {version}: pip install --upgrade torch",
            needed=needed,
            version=version,
        )
    return None


def _torch_version() -> str | None:
    """The version of the torch that is loaded or would be; "" where it does not tell; None for no torch."""
    loaded = sys.modules.get("torch")
    if loaded is not None:
        return str(loaded.__dict__.get("__version__", ""))
    if importlib.util.find_spec("torch") is None:
        return None
    try:
        return importlib.metadata.version("torch")
    except importlib.metadata.PackageNotFoundError:
        return ""
