"""The session around the checked code: its cells, and the names it works with."""

from __future__ import annotations

from types import FrameType
from typing import Any

from ipydevice import hook, session
from ipydevice.cells import CellHistory


def history_of(shell: Any) -> CellHistory:
    """The cells of a shell, also where the extension is not loaded."""
    hung = hook.of(shell)
    return CellHistory.from_shell(shell) if hung is None else hung.history


def around(caller: FrameType) -> tuple[CellHistory, dict[str, Any]]:
    """The cells of the session and the names that the code of `caller` works with."""
    return among(caller.f_globals)


def among(names: dict[str, Any]) -> tuple[CellHistory, dict[str, Any]]:
    """The same for code with these globals."""
    shell = session.current_shell()
    if shell is None or names is not shell.user_ns:
        return CellHistory(), names
    return history_of(shell), session.workspace(shell)
