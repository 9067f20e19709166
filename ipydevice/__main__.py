"""``python -m ipydevice``: the command line; alone, the versions at hand."""

from __future__ import annotations

import sys

from ipydevice.cli import main

__all__ = ["main"]

if __name__ == "__main__":
    sys.exit(main())
