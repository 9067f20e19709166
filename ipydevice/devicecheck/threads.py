"""Threads that checked code starts are checked too: a mode of torch belongs to one thread."""

from __future__ import annotations

import threading
from typing import Any

from ipydevice.devicecheck import callsite, nesting
from ipydevice.devicecheck.replacing import Replaced

_open = 0  # checks
_replaced: list[Replaced] = []


def listen() -> None:
    """From now on threads started by checked code are watched; as often as it is called, `ignore` has to be."""
    global _open
    _open += 1
    if _open == 1:
        _replaced.append(Replaced(threading.Thread, "start", _start))
        _replaced.append(Replaced(threading, "excepthook", _excepthook))


def ignore() -> None:
    """Undo one `listen`."""
    global _open
    _open -= 1
    while _open == 0 and _replaced:
        _replaced.pop().close()


def _start(replaced: Replaced) -> Any:
    def start(thread: threading.Thread) -> None:
        check = nesting.innermost()
        if check is None:
            replaced.before(thread)
            return
        held = thread.__dict__
        run = thread.run  # a subclass may have its own

        def watched() -> None:
            held.pop("run", None)
            with check.watching_thread():
                run()

        held["run"] = watched
        try:
            replaced.before(thread)
        except BaseException:
            held.pop("run", None)
            raise

    return start


def _excepthook(replaced: Replaced) -> Any:
    """What ends a thread is printed without our frames."""

    def excepthook(args: Any, /) -> None:
        error = args.exc_value
        if error is not None:
            callsite.cut_own_frames(error)
            args = threading.ExceptHookArgs((args.exc_type, error, error.__traceback__, args.thread))
        replaced.before(args)

    return excepthook
