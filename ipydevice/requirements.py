"""Which PyTorch is here, and a clear word when it is missing or too old."""

from __future__ import annotations

import importlib.util
import re
import sys

OLDEST_TORCH = (2, 4)


def torch_trouble() -> str | None:
    """Why ipydevice cannot work with this PyTorch, or None. Imports nothing."""
    needed = ".".join(map(str, OLDEST_TORCH))
    torch = sys.modules.get("torch")
    if torch is None:
        if importlib.util.find_spec("torch") is None:
            return f"PyTorch is not installed in this environment; ipydevice needs {needed} or newer: pip install torch"
        return None
    version = str(torch.__dict__.get("__version__", ""))
    numbers = tuple(int(digits) for digits in re.findall(r"\d+", version)[:2])
    if numbers and numbers < OLDEST_TORCH:
        return f"ipydevice needs PyTorch {needed} or newer, and this is {version}: pip install --upgrade torch"
    return None
