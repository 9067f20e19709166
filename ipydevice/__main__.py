"""``python -m ipydevice``: what is here, for a question or a bug report."""

from __future__ import annotations

import argparse
import importlib.metadata
import sys

import ipydevice
from ipydevice.requirements import torch_trouble

_SHOWN = ("torch", "ipython", "ipykernel", "ipywidgets", "anywidget", "jupyterlab", "notebook")


def main(arguments: list[str] | None = None) -> int:
    """Print the versions at hand. Returns 1 where ipydevice cannot work with them.

    ``checkpoint FILE...`` tells instead what checkpoint files hold, without loading them.
    """
    given = sys.argv[1:] if arguments is None else arguments
    if given[:1] == ["checkpoint"]:
        from ipydevice import checkpoint

        return checkpoint.main(given[1:])
    parser = argparse.ArgumentParser(
        prog="python -m ipydevice",
        description="The versions at hand. In a notebook: %load_ext ipydevice. In a script: ipydevice.explain(). "
        "Checkpoint files: ipydevice checkpoint FILE...",
    )
    parser.add_argument("--version", action="version", version=f"ipydevice {ipydevice.__version__}")
    parser.parse_args(arguments)

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


if __name__ == "__main__":
    sys.exit(main())
