"""Threads that checked code starts are checked too: a mode of torch belongs to one thread."""

from __future__ import annotations

import threading
from typing import Any

from ipydevice.devicecheck import callsite, nesting

_open = 0  # checks
_patch: _Patch | None = None


def listen() -> None:
    """From now on threads started by checked code are watched; as often as it is called, `ignore` has to be."""
    global _open, _patch
    _open += 1
    if _patch is None:
        _patch = _Patch()


def ignore() -> None:
    """Undo one `listen`."""
    global _open, _patch
    _open -= 1
    if _open == 0 and _patch is not None:
        _patch.close()
        _patch = None


class _Patch:
    """In the place of ``Thread.start``, and of the hook that prints what ends a thread."""

    def __init__(self) -> None:
        self._start = threading.Thread.start
        self._excepthook = threading.excepthook
        start_before, hook_before = self._start, self._excepthook

        def start(thread: threading.Thread) -> None:
            check = nesting.innermost()
            if check is None:
                start_before(thread)
                return
            held = thread.__dict__
            run = thread.run  # a subclass may have its own

            def watched() -> None:
                held.pop("run", None)
                with check.watching_thread():
                    run()

            held["run"] = watched
            try:
                start_before(thread)
            except BaseException:
                held.pop("run", None)
                raise

        def excepthook(args: Any, /) -> None:
            error = args.exc_value
            if error is not None:
                callsite.cut_own_frames(error)
                args = threading.ExceptHookArgs((args.exc_type, error, error.__traceback__, args.thread))
            hook_before(args)

        self._ours = start, excepthook
        threading.Thread.start = start  # type: ignore[method-assign, assignment]
        threading.excepthook = excepthook

    def close(self) -> None:
        """Put back what nobody has replaced since; what stays only passes on."""
        start, excepthook = self._ours
        if threading.Thread.start is start:
            threading.Thread.start = self._start  # type: ignore[method-assign]
        if threading.excepthook is excepthook:
            threading.excepthook = self._excepthook
