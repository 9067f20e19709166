"""The versions at hand, for a question or a bug report."""

from __future__ import annotations

import sys

import ipydevice
from ipydevice.environment import PACKAGES, version_of
from ipydevice.requirements import torch_trouble


def show() -> int:
    """Print the versions. Returns 1 where ipydevice cannot work with them."""
    print(f"ipydevice {ipydevice.__version__}, Python {sys.version.split()[0]}")
    for name in PACKAGES:
        print(f"{name:<12}{version_of(name) or 'not installed'}")
    trouble = torch_trouble()
    if trouble is not None:
        print(trouble)
    return int(trouble is not None)
