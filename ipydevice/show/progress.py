"""A line about something that still runs: updated in place in a notebook, printed now and then in a terminal."""

from __future__ import annotations

import contextvars
import html
import os
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

from ipydevice.show import quantities

EVERY = 1.0  # seconds between updates in a notebook
SHORT = 2.0  # what is over by then shows nothing in a notebook
PATIENCE = 5.0  # the first line in a terminal; each one after it waits twice as long


class Progress:
    """Asks for the line from a thread of its own, so that what runs is not slowed down."""

    def __init__(self, shell: Any, line: Callable[[], str]) -> None:
        self._shell = shell
        self._line = line
        self._in_notebook = getattr(shell, "kernel", None) is not None
        self._id = f"ipydevice-{os.urandom(6).hex()}"
        self._shown = False
        self._over = threading.Event()
        # ipykernel 7 knows by the context which cell an output belongs to (ipykernel/zmqshell.py, parent_header).
        context = contextvars.copy_context()
        self._thread = threading.Thread(target=context.run, args=(self._tell,), daemon=True, name="ipydevice-progress")

    def start(self) -> None:
        """From here on it tells."""
        self._began = time.monotonic()
        self._thread.start()

    def stop(self) -> None:
        """It is over; the line in a notebook goes away."""
        self._over.set()
        self._thread.join(timeout=EVERY)
        if self._shown:
            self._publish("", "")
            self._shown = False

    def _tell(self) -> None:
        try:
            self._keep_telling()
        except Exception:  # a closed stream, a front end that is gone: what runs goes on without a line
            if os.environ.get("IPYDEVICE_DEBUG") == "1":
                raise

    def _keep_telling(self) -> None:
        wait = SHORT if self._in_notebook else PATIENCE
        while not self._over.wait(wait):
            taken = time.monotonic() - self._began
            line = f"{self._line()} ({quantities.duration(taken)})"
            if self._in_notebook:
                wait = EVERY
                self._publish(line, f'<small style="opacity:.7">{html.escape(line)}</small>')
            else:
                wait = taken
                print(f"ipydevice: {line}", file=sys.stderr, flush=True)

    def _publish(self, text: str, page: str) -> None:
        self._shell.display_pub.publish(
            {"text/plain": text, "text/html": page}, transient={"display_id": self._id}, update=self._shown
        )
        self._shown = True
