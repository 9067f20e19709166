"""Which check a piece of code belongs to: the one that was opened last in its task or thread."""

from __future__ import annotations

from contextvars import ContextVar
from typing import TYPE_CHECKING

from torch import overrides

from ipydevice.devicecheck.mode import Watch

if TYPE_CHECKING:
    from ipydevice.devicecheck.watching import Check

# Of the context and not of the thread: tasks of one event loop take turns in one thread.
_opened: ContextVar[Check | None] = ContextVar("ipydevice_check", default=None)


def innermost() -> Check | None:
    """The check around the code that runs now; None outside of all."""
    check = _opened.get()
    while check is not None and not check.is_open:  # closed in another context, such as that of IPython's event
        check = check.outer
    return check


def enter(check: Check | None) -> None:
    """From here on code of this context belongs to `check`."""
    _opened.set(check)


def settle() -> None:
    """Of the watches of this thread the uppermost tells, and those below only count."""
    watches = [mode for mode in overrides._get_current_function_mode_stack() if isinstance(mode, Watch)]  # type: ignore[no-untyped-call]
    for watch in watches:
        watch.paused = watch is not watches[-1]
