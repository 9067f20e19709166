"""Paths that tell nothing about the machine: those in the project stay, of others only the end."""

from __future__ import annotations

import os
import re
import sys

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
    if "/" not in text and "\\" not in text:
        return text
    for folder in _known_folders():  # by name first, since folders may have spaces in theirs
        text = text.replace(folder, "")
    return _ABSOLUTE.sub("…/", _INSTALLED.sub("", text))


def _known_folders() -> list[str]:
    """The project's folder and those that Python takes modules from, each with its separator, inner ones first."""
    folders = {os.path.join(folder, "") for folder in (_here(), *sys.path) if os.path.isabs(folder)}
    home = os.path.join(os.path.expanduser("~"), "")
    return sorted((folder for folder in folders if len(folder) > 1 and folder != home), key=len, reverse=True)


def _here() -> str:
    try:
        return os.getcwd()
    except OSError:  # somebody has deleted it
        return ""
