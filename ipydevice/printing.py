"""A diagnosis in a terminal where no shell takes `%devicefix`."""

from __future__ import annotations

import shutil
from dataclasses import replace

from ipydevice.diagnosis import Diagnosis
from ipydevice.show import as_text, tree_of
from ipydevice.show.tree import Options

WIDEST = 100  # columns
CHANGES = 4  # lines of code below each fix: nothing applies it here, so a person types it


def panel(diagnosis: Diagnosis, *, color: bool) -> str:
    """The panel as lines of text, as many as it takes: the code of each fix in place of a live session's magics."""
    tree = tree_of(diagnosis)
    blocks = tuple(
        Options(tuple(replace(option, command="") for option in block.options), changes=CHANGES)
        if isinstance(block, Options)
        else block
        for block in tree.blocks
    )
    width = min(WIDEST, shutil.get_terminal_size((WIDEST, 24)).columns)
    return as_text.render(replace(tree, blocks=blocks, lines=None), width=width, color=color)
