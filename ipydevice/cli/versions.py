"""The versions at hand, for a question or a bug report."""

from __future__ import annotations

import importlib.metadata
import sys

import ipydevice
from ipydevice.requirements import torch_trouble

_SHOWN = ("torch", "ipython", "ipykernel", "ipywidgets", "anywidget", "jupyterlab", "notebook")


def show() -> int:
    """Print the versions. Returns 1 where ipydevice cannot work with them."""
    print(f"ipydevice {ipydevice.__version__}, Python {sys.version.split()[0]}")
    for name in _SHOWN:
        print(f"{name:<12}{_version(name)}")
    trouble = torch_trouble()
    if trouble is not None:
        print(trouble)
    return int(trouble is not None)


def _version(distribution: str) -> str:
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return "not installed"
