"""A diagnosis in a terminal where no shell takes `%devicefix`."""

from __future__ import annotations

import shutil

from ipydevice import show
from ipydevice.diagnosis import Diagnosis

WIDEST = 100  # columns


def panel(diagnosis: Diagnosis, *, color: bool) -> str:
    """The panel as lines of text, as wide as the terminal."""
    width = min(WIDEST, shutil.get_terminal_size((WIDEST, 24)).columns)
    return show.printed(diagnosis, width=width, color=color)
