"""Warnings of torch point at the user's line, not at ours.

torch warns from C++ at the Python frame that runs, and during a check that is the mode's.
"""

from __future__ import annotations

import sys
import warnings
from typing import Any, TextIO

from ipydevice.devicecheck import callsite, mode
from ipydevice.devicecheck.replacing import Replaced
from ipydevice.diagnose.frames import OWN_FOLDER


class WarningPlaces:
    """While it is open, what is warned of in our frames is shown at the nearest frame of the user's."""

    def __init__(self) -> None:
        # Python remembers by place what it has shown: all of a check's would be one place for ever.
        vars(mode).pop("__warningregistry__", None)
        self._replaced = Replaced(warnings, "showwarning", _show)

    def close(self) -> None:
        self._replaced.close()


def _show(replaced: Replaced) -> Any:
    def show(
        message: Warning | str,
        category: type[Warning],
        filename: str,
        lineno: int,
        file: TextIO | None = None,
        line: str | None = None,
    ) -> None:
        if filename.startswith(OWN_FOLDER) and replaced.is_open:
            frame = callsite.nearest(sys._getframe(1))
            if frame is not None:
                filename, lineno = frame.f_code.co_filename, frame.f_lineno
        replaced.before(message, category, filename, lineno, file, line)

    return show
