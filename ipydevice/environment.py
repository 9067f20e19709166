"""What a reader of a report asks first: versions and devices, as strings. Imports and initialises nothing."""

from __future__ import annotations

import importlib.metadata
import platform
import sys
from collections.abc import Iterator
from functools import cache
from typing import Any

import ipydevice

PACKAGES = ("torch", "ipython", "ipykernel", "ipywidgets", "anywidget", "jupyterlab", "notebook")
_KINDS = ("cuda", "xpu", "mtia", "hpu", "npu")  # modules of torch with the calls of torch.cuda
MOST_DEVICES = 16


def versions() -> dict[str, str]:
    """Of ipydevice, Python and the packages that matter; those that are not installed are left out."""
    found = {"ipydevice": ipydevice.__version__, "Python": platform.python_version()}
    for name in PACKAGES:
        version = version_of(name)
        if version is not None:
            found[name] = version
    loaded = sys.modules.get("torch")
    if loaded is not None:  # the local part of its version says for which accelerator it was built: 2.9.1+cu128
        found["torch"] = str(loaded.__dict__.get("__version__", found.get("torch", "?")))
    found["system"] = f"{platform.system()} {platform.machine()}"
    return found


@cache
def version_of(distribution: str) -> str | None:
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return None


def devices() -> list[str]:
    """The accelerators that this process has used so far, as "cuda:0 NVIDIA H200, 139 GiB".

    One that nothing has used yet is not asked: that would take memory on it, and a forked worker could not use it
    any more (https://docs.pytorch.org/docs/stable/notes/multiprocessing.html, "Poison fork").
    """
    torch = sys.modules.get("torch")
    if torch is None:
        return []
    found: list[str] = []
    for kind in (*_KINDS, _private(torch)):
        module = torch.__dict__.get(kind)
        try:
            if module is not None and module.is_initialized():
                found += [f"{kind}:{number} {told}".rstrip() for number, told in _cards(module)]
        except Exception:  # noqa: BLE001 (drivers refuse with errors of their own)
            continue
    try:
        if torch.backends.mps.is_available():
            found.append("mps")
    except Exception:  # noqa: BLE001 (a driver that is half there)
        pass
    return found


def _private(torch: Any) -> str:
    """The name that a private backend has given itself."""
    try:
        return str(torch._C._get_privateuse1_backend_name())
    except Exception:  # noqa: BLE001 (a function for the inside of torch)
        return ""


def _cards(module: Any) -> Iterator[tuple[int, str]]:
    for number in range(min(module.device_count(), MOST_DEVICES)):
        facts = module.get_device_properties(number)
        size = getattr(facts, "total_memory", None)
        memory = f"{size / 2**30:.0f} GiB" if isinstance(size, int) else ""
        yield number, ", ".join(part for part in (str(getattr(facts, "name", "")), memory) if part)
