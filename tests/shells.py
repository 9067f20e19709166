"""Real IPython, in process and as a kernel, for tests to run cells in."""

from __future__ import annotations

import atexit
import contextlib
import inspect
import io
import re
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from IPython import version_info
from IPython.core.interactiveshell import InteractiveShell
from traitlets.config import Config

_COLOUR = re.compile(r"\x1b\[[\d;]*m")

TIMEOUT = 120  # seconds; importing torch on a busy machine


@dataclass
class Run:
    """What one run of a cell gave."""

    text: str = ""  # all that was printed, tracebacks and panels too
    error: BaseException | None = None


class Shell:
    """IPython's shell in this process, as its terminal has it, without colours and history file."""

    def __init__(self) -> None:
        config = Config()
        config.HistoryManager.enabled = False
        config.InteractiveShell.colors = "nocolor" if version_info >= (9,) else "NoColor"
        InteractiveShell.clear_instance()
        self.ip = InteractiveShell.instance(config=config)
        self._takes_ids = "cell_id" in inspect.signature(self.ip.run_cell).parameters  # not in IPython 7.34

    def run(self, source: str, cell_id: str | None = None) -> Run:
        ids = {"cell_id": cell_id} if self._takes_ids else {}
        out = io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
            result = self.ip.run_cell(source, store_history=True, **ids)
        return Run(out.getvalue(), result.error_before_exec or result.error_in_exec)

    def let_go(self) -> None:
        """Free the objects of the cells: IPython keeps each shell until the process ends (`atexit_operations`)."""
        self.ip.reset(new_session=False)
        self.ip.last_execution_result = None
        self.ip.InteractiveTB.tb = None
        atexit.unregister(self.ip.atexit_operations)

    @property
    def names(self) -> dict[str, Any]:
        namespace: dict[str, Any] = self.ip.user_ns
        return namespace


@contextlib.contextmanager
def shell() -> Iterator[Shell]:
    """A fresh shell; what it sets in `sys` and `threading` is put back afterwards."""
    hooks = sys.excepthook, sys.displayhook, threading.excepthook
    fresh = Shell()
    try:
        yield fresh
    finally:
        if "ipydevice" in fresh.ip.extension_manager.loaded:
            fresh.run("%unload_ext ipydevice")
        fresh.let_go()
        InteractiveShell.clear_instance()
        sys.excepthook, sys.displayhook, threading.excepthook = hooks
        for name in ("last_type", "last_value", "last_traceback", "last_exc"):
            sys.__dict__.pop(name, None)


@dataclass
class KernelRun:
    """What a kernel sent for one cell, message by message."""

    status: str = ""
    number: int = 0
    text: str = ""  # streams, and the plain text of what was displayed
    traceback: str = ""
    bundles: list[dict[str, Any]] = field(default_factory=list)  # displayed, in their order
    kinds: list[str] = field(default_factory=list)  # types of the outputs, in their order
    payload: list[dict[str, Any]] = field(default_factory=list)

    def shown(self, mime_type: str) -> list[Any]:
        return [bundle[mime_type] for bundle in self.bundles if mime_type in bundle]


class Kernel:
    """A real ipykernel in its own process."""

    def __init__(self) -> None:
        from jupyter_client.manager import start_new_kernel

        self._manager, self._client = start_new_kernel(kernel_name="python3", startup_timeout=TIMEOUT)

    def run(self, source: str, cell_id: str | None = None) -> KernelRun:
        """Runs a cell as a front end does, with the cell's id in the metadata where there is one."""
        content = {
            "code": source,
            "silent": False,
            "store_history": True,
            "user_expressions": {},
            "allow_stdin": False,
            "stop_on_error": True,
        }
        message = self._client.session.msg("execute_request", content, metadata={"cellId": cell_id} if cell_id else {})
        self._client.shell_channel.send(message)
        run = KernelRun()
        wanted = message["header"]["msg_id"]
        while True:
            told = self._client.get_iopub_msg(timeout=TIMEOUT)
            if told["parent_header"].get("msg_id") == wanted and _note(run, told["msg_type"], told["content"]):
                break
        while True:
            reply = self._client.get_shell_msg(timeout=TIMEOUT)
            if reply["parent_header"].get("msg_id") == wanted:
                run.status = reply["content"]["status"]
                run.number = reply["content"].get("execution_count", 0)
                run.payload = reply["content"].get("payload", [])
                return run

    def close(self) -> None:
        self._client.stop_channels()
        self._manager.shutdown_kernel(now=True)


def _note(run: KernelRun, kind: str, content: dict[str, Any]) -> bool:
    """Adds one message to a run. True when it says that the cell is over."""
    if kind == "status":
        return bool(content["execution_state"] == "idle")
    if kind == "stream":
        run.text += content["text"]
    elif kind in ("display_data", "execute_result"):
        run.bundles.append(content["data"])
        run.text += content["data"].get("text/plain", "") + "\n"
    elif kind == "error":
        run.traceback = _COLOUR.sub("", "\n".join(content["traceback"]))
    else:
        return False
    if not run.kinds or kind != "stream" or run.kinds[-1] != "stream":
        run.kinds.append(kind)
    return False


@contextlib.contextmanager
def kernel() -> Iterator[Kernel]:
    started = Kernel()
    try:
        yield started
    finally:
        started.close()


__all__ = ["Kernel", "KernelRun", "Run", "Shell", "kernel", "shell"]
