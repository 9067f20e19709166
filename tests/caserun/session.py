"""One notebook session: a real IPython shell, run cell by cell, on virtual GPUs or on the host alone."""

from __future__ import annotations

import contextlib
import io
import os
import re
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from types import FrameType, TracebackType
from typing import Any

import torch
from IPython.core.interactiveshell import InteractiveShell
from traitlets.config import Config

CARDS = {"DEV": "cuda:0", "DEV2": "cuda:1", "HOST": "cpu"}
HOST_ONLY = {"DEV": "cpu", "DEV2": "cpu", "HOST": "cpu"}
CELL_FILE = re.compile(r"<ipython-input-(\d+)-")


@dataclass
class CellRun:
    """What one run of a cell gave."""

    error: BaseException | None
    output: str

    @property
    def error_text(self) -> str:
        return "" if self.error is None else f"{type(self.error).__name__}: {self.error}"


class Session:
    """A shell of its own; one per process, since IPython and the virtual GPUs are global."""

    def __init__(self, *, virtual: bool, extension: bool) -> None:
        config = Config()
        config.HistoryManager.enabled = False  # no sqlite, no writer thread: we fork
        config.InteractiveShell.colors = "nocolor"
        InteractiveShell.clear_instance()
        self.shell = InteractiveShell.instance(config=config)
        self.names = CARDS if virtual else HOST_ONLY
        os.environ["TMPDIR"] = tempfile.mkdtemp(prefix="case-", dir=os.environ.get("CASES_TMP"))
        tempfile.tempdir = None
        os.chdir(os.environ["TMPDIR"])
        if virtual:
            from ipydevice.virtual import virtual_gpus

            self.gpus = virtual_gpus(2)
            self.gpus.enable()
        if extension:
            with contextlib.redirect_stdout(io.StringIO()):
                self.shell.run_line_magic("load_ext", "ipydevice")
        self.shell.user_ns.update(self.names)

    @property
    def namespace(self) -> dict[str, Any]:
        return self.shell.user_ns

    def run(self, source: str, cell_id: str | None = None) -> CellRun:
        """Runs one cell as a front end does, seeded as the README of the cases wants it."""
        torch.manual_seed(0)
        before = getattr(sys, "last_value", None)
        out = io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
            result = self.shell.run_cell(source, store_history=True, cell_id=cell_id)
        error = result.error_before_exec or result.error_in_exec
        last = getattr(sys, "last_value", None)
        if error is None and last is not before:  # %%time shows the error itself and returns
            error = last
        return CellRun(error, out.getvalue())

    def run_all(self, sources: Mapping[int, str]) -> tuple[int | None, CellRun | None]:
        """Runs cells in order up to the first that fails: its number and its run, or (None, None)."""
        for number, source in sources.items():
            run = self.run(source, cell_id=f"id-{number}")
            if run.error is not None:
                return number, run
        return None, None

    def expectation(self, expression: str) -> str:
        """ "" where the expression is true, else what it is."""
        try:
            value = eval(expression, self.namespace)
        except Exception as error:  # noqa: BLE001 - whatever the notebook's objects raise
            return f"{type(error).__name__}: {error}"
        return "" if value else f"is {value!r}"


def cell_of(frame: FrameType) -> int | None:
    """The execution number of the cell whose code the frame runs."""
    found = CELL_FILE.match(frame.f_code.co_filename)
    return int(found[1]) if found else None


def user_frames(traceback: TracebackType | None, running: int) -> list[tuple[int | None, FrameType]]:
    """(cell, frame) of the user's own frames, the innermost first; a frame of a .py file has no cell."""
    found: list[tuple[int | None, FrameType]] = []
    while traceback is not None:
        frame = traceback.tb_frame
        file = frame.f_code.co_filename
        if file == "<timed exec>":
            found.append((running, frame))
        elif cell_of(frame) is not None or _own_file(file):
            found.append((cell_of(frame), frame))
        traceback = traceback.tb_next
    return found[::-1]


def _own_file(file: str) -> bool:
    return not (file.startswith((sys.base_prefix, "<")) or "site-packages" in file or "/ipydevice/" in file)
