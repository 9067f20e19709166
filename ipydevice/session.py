"""Questions about the session at hand: its last error, its workspace. Inside IPython or without."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

from ipydevice import hook
from ipydevice.cells import CellHistory
from ipydevice.diagnosis import Diagnosis, Inventory
from ipydevice.kept import kept, last_error
from ipydevice.language import say
from ipydevice.requirements import torch_trouble


def explain(exc: BaseException | None = None) -> Diagnosis | None:
    """What went wrong with devices in an exception, by default the last one that was shown.

    Returns None when it is no device error, or when there has been none.

    Raises:
        TypeError: `exc` is no exception.
        ImportError: PyTorch is missing, or older than 2.4.
    """
    if exc is not None and not issubclass(type(exc), BaseException):
        raise TypeError(
            say("explain() takes an exception, such as sys.last_value, but got {given}", given=_called(exc))
        )
    _need_torch()
    shell = current_shell()
    hung = None if shell is None else hook.of(shell)
    if exc is None:
        exc = getattr(sys, "last_value", None) if shell is None else last_error(shell)
    if exc is None:
        return None
    if hung is not None and hung.explained(exc):
        return hung.last

    from ipydevice import postmortem

    # The cell that asks is not the one that has failed; where they are one, the traceback tells.
    found = postmortem.begin(exc, _history(shell).afterwards(), workspace(shell))
    if found is None:
        return None
    diagnosis = found.finish()
    if hung is not None:
        hung.remember(exc, diagnosis)
    return diagnosis


def inventory(namespace: Mapping[str, Any] | None = None) -> Inventory:
    """Everything with a device in a namespace, by default the notebook's own, or ``__main__``'s.

    Raises:
        TypeError: `namespace` is no mapping of names, such as ``globals()``.
        ImportError: PyTorch is missing, or older than 2.4.
    """
    if namespace is not None and not isinstance(namespace, Mapping):
        raise TypeError(
            say("inventory() takes a mapping of names, such as globals(), but got {given}", given=_called(namespace))
        )
    _need_torch()

    from ipydevice import listing

    if namespace is not None:
        return listing.list_namespace(namespace)
    return listed(current_shell())


def listed(shell: Any, **wishes: Any) -> Inventory:
    """The table of the user's names, with edits of the cells for what is odd; `wishes` are those of `listing.examine`.

    Raises:
        ValueError: a name that is not there, or a kind or order that is not known.
    """
    from ipydevice import listing

    names = workspace(shell)
    found, oddities = listing.examine(names, cells=texts(shell), kept=kept(shell), **wishes)
    if not oddities:
        return found
    from ipydevice import remedies

    return remedies.with_edits(found, oddities, _history(shell), names)


def current_shell() -> Any:
    """The IPython shell that runs here, or None."""
    ipython = sys.modules.get("IPython")
    return None if ipython is None else ipython.get_ipython()


def workspace(shell: Any) -> dict[str, Any]:
    """The names that the user works with."""
    names: dict[str, Any] = sys.modules["__main__"].__dict__ if shell is None else shell.user_ns
    return names


def texts(shell: Any) -> list[str]:
    """The Python of the notebook's cells, in the order in which they last ran."""
    history = _history(shell)
    return [history.python(cell)[0] for cell in history.current()]


def _need_torch() -> None:
    """Raise ImportError, with what to do, when there is no PyTorch to work with."""
    trouble = torch_trouble()
    if trouble is not None:
        raise ImportError(trouble)


def _history(shell: Any) -> CellHistory:
    if shell is None:
        return CellHistory()
    hung = hook.of(shell)
    return CellHistory.from_shell(shell) if hung is None else hung.history


def _called(value: object) -> str:
    return (
        say("the class {kind}", kind=value.__name__)
        if isinstance(value, type)
        else say("an object of type {kind}", kind=type(value).__name__)
    )
