"""Letting go of the last error, which holds the tensors of a failed cell.

An error keeps its frames and a frame its locals, so that after a failed cell all that it
had made stays in the accelerator's memory, in three places: ``sys.last_*``, the shell's
traceback formatter and the result of the cell (github.com/ipython/ipython/issues/11572).
"""

from __future__ import annotations

import gc
import sys
from typing import Any

from ipydevice.kept import kept, last_error

_NAMES = ("last_type", "last_value", "last_traceback", "last_exc")  # last_exc since Python 3.12


def held_by_error(shell: Any) -> dict[str, int]:
    """Bytes by device that nothing but the last error's frames holds, as far as names can tell."""
    from ipydevice import listing

    memory = listing.list_namespace(shell.user_ns, kept=kept(shell)).memory
    return {one.device: one.error for one in memory if one.error}


def forget_error(shell: Any) -> dict[str, int]:
    """Free what the last error holds, and tell its bytes. ``%debug`` and ``%tb`` have nothing to show afterwards."""
    held = held_by_error(shell)
    _unlink(last_error(shell))
    _unlink(getattr(sys, "last_value", None))
    for name in _NAMES:
        sys.__dict__.pop(name, None)
    formatter = shell.InteractiveTB
    formatter.tb = None
    debugger = formatter.pdb
    if debugger is not None:  # somebody has used %debug
        debugger.forget()
        debugger.botframe = None
    result = shell.last_execution_result
    if result is not None:
        result.error_in_exec = result.error_before_exec = None
    gc.collect()  # a frame that has caught its own error is a cycle
    return held


def _unlink(exc: BaseException | None) -> None:
    """Cut every traceback in the chain: deleting the names alone frees nothing that anybody else still names."""
    seen: set[int] = set()
    waiting = [exc]
    while waiting:
        one = waiting.pop()
        if one is None or id(one) in seen:
            continue
        seen.add(id(one))
        waiting += [one.__cause__, one.__context__]
        if one.__traceback__ is not None:
            one.__traceback__.tb_next = None
        one.__traceback__ = None
