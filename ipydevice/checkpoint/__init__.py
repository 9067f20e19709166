"""Checkpoint files: where their tensors were saved from, and what loading would do on this machine.

Nothing is unpickled and no tensor's data is read: the directory of the zip file and the
opcodes of its pickle tell all of it, so a hostile file is listed and never run.
"""

from __future__ import annotations

import glob
import os
import sys
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ipydevice.diagnosis import Inventory

ENDINGS = (".pt", ".pth", ".bin", ".ckpt", ".safetensors", ".pkl", ".pickle", ".tar", ".index.json")

__all__ = ["ENDINGS", "files_named", "is_name_of_one", "main", "means_a_file", "read"]


def read(path: str | os.PathLike[str]) -> Inventory:
    """What a checkpoint file holds, as the table that `ipydevice.inventory()` gives of a workspace.

    Reads files of `torch.save` (zip, and legacy before PyTorch 1.6), TorchScript, safetensors and
    ``*.index.json`` of sharded checkpoints.

    Raises:
        OSError: the file is not there or may not be read.
        ValueError: it is no checkpoint; the text says what was looked for.
    """
    from ipydevice.checkpoint import formats, report

    return report.inventory_of(formats.read(path))


def is_name_of_one(name: str) -> bool:
    """Whether a text looks like the name of a checkpoint file that is there."""
    return name.endswith(ENDINGS) and os.path.isfile(os.path.expanduser(name))


def files_named(name: str) -> list[str]:
    """The files and folders that a text means: "model.pt", "~/runs/*.pt"; a word means no folder without such."""
    path = os.path.expanduser(name)
    if os.path.isfile(path) or (os.path.isdir(path) and (means_a_file(name) or files_in(path))):
        return [path]
    return sorted(filter(is_name_of_one, glob.glob(path)))


def files_in(folder: str | os.PathLike[str]) -> list[str]:
    """Names of the checkpoint files in a folder; first an index, which stands for all of its shards."""
    with os.scandir(folder) as entries:
        names = [entry.name for entry in entries if entry.name.endswith(ENDINGS) and entry.is_file()]
    return sorted(names, key=lambda name: (not name.endswith(".index.json"), name))


def means_a_file(name: str) -> bool:
    """Whether a text can only be meant as the name of a file."""
    return name.endswith(ENDINGS) or name.startswith(("/", "~", "./", "../"))


def main(paths: Sequence[str | os.PathLike[str]]) -> int:
    """Print what the files hold. Returns 0, 2 where none is given or one cannot be read."""
    from ipydevice import show
    from ipydevice.show.front_end import printable

    if not paths:
        print("ipydevice checkpoint: give a file, such as model.pt", file=sys.stderr)
        return 2
    failed = 0
    for path in paths:
        try:
            text = show.text(_for_a_terminal(read(path)))
        except (OSError, ValueError) as error:
            failed = 2
            reason = f"{path}: {error.strerror}" if isinstance(error, OSError) and error.strerror else error
            print(f"ipydevice checkpoint: {reason}", file=sys.stderr)
            continue
        print(printable(text, sys.stdout))
    return failed


def _for_a_terminal(found: Inventory) -> Inventory:
    """Outside a notebook there is no `%devicefix`: what a fix would insert is told as code."""
    notes = tuple(("instead", f"`{fix.setup}`") for fix in found.fixes)
    return replace(found, notes=(*found.notes, *notes), fixes=())
