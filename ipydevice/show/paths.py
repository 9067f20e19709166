"""Paths that tell nothing about the machine: those in the project stay, of others only the end."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

# An absolute path of any system, also a file's address; "https://..." and a division are none.
_ABSOLUTE = re.compile(
    r"""(?<![\w.:/\\~])(?:file://)?(?:
        ~?/(?:[^\s"'`<>()\[\]{},;:|*?/]+/)+      # /home/me/data/, ~/data/
      | [A-Za-z]:[\\/]+(?:[^\s"'`<>()\[\]{},;:|*?\\/]+[\\/]+)*  # a drive of Windows
      | \\\\+(?:[^\s"'`<>()\[\]{},;:|*?\\/]+\\+)+  # a share of Windows
    )""",
    re.VERBOSE,
)
_INSTALLED = re.compile(r"""[^\s"'`]*?[\\/](?:site|dist)-packages[\\/]+""")


def without_folders(text: str) -> str:
    """`text` with paths below the working directory relative, and "…/name" for every other absolute path."""
    for folder in _known_folders():  # by name first, since folders may have spaces in theirs
        text = text.replace(folder, "")
    return _ABSOLUTE.sub("…/", _INSTALLED.sub("", text))


def _known_folders() -> list[str]:
    """The project's folder and those that Python takes modules from, each with its separator, inner ones first."""
    folders = {os.path.join(folder, "") for folder in (os.getcwd(), *sys.path) if os.path.isabs(folder)}
    home = os.path.join(Path.home(), "")
    return sorted((folder for folder in folders if len(folder) > 1 and folder != home), key=len, reverse=True)
