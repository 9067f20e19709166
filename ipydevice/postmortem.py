"""From an exception to a `Diagnosis`: joins the stages and guards each of them.

`begin` finds out whether the exception is a device error at all and names the culprit;
`PostMortem.finish` adds origin, cause, fixes and the table.  What fails in a later stage
costs that part of the diagnosis and a note, never the rest.
"""

from __future__ import annotations

import os
import sys
from typing import Any

from ipydevice.cells import CellHistory
from ipydevice.diagnosis import Diagnosis, Fix, Row


def begin(
    exc: BaseException, history: CellHistory | None = None, namespace: dict[str, Any] | None = None
) -> PostMortem | None:
    """Start on an exception; None when it is no device error."""
    from ipydevice import messages

    found = messages.find(exc)
    if found is None:
        return None
    raised, mismatch = found
    return PostMortem(raised, mismatch, history or CellHistory(), namespace)


def explain(
    exc: BaseException | None = None, history: CellHistory | None = None, namespace: dict[str, Any] | None = None
) -> Diagnosis | None:
    """The Diagnosis of an exception (default: the last one shown); None when it is no device error."""
    if exc is None:
        exc = getattr(sys, "last_value", None)
    started = begin(exc, history, namespace) if exc is not None else None
    return started.finish() if started is not None else None


class PostMortem:
    """One device error being examined. Holds frames and tensors until `finish`; drop it afterwards."""

    def __init__(
        self, exc: BaseException, mismatch: Any, history: CellHistory, namespace: dict[str, Any] | None
    ) -> None:
        from ipydevice.diagnose import Analysis

        if namespace is None:
            namespace = _module_namespace(exc)
        self._mismatch = mismatch
        self._notes: list[str] = []
        self._analysis: Analysis | None = Analysis(exc.__traceback__, mismatch, history, namespace)
        self._finding: Any = None
        try:
            self._analysis.find_culprit()
            self._finding = self._analysis.finding()
        except Exception as error:
            self._failed("naming the culprit", error)

    @property
    def finding(self) -> Any:
        """What is known so far, with live objects in it (`diagnose.finding.Finding`); None after `finish`."""
        return self._finding

    @property
    def headline(self) -> str:
        """One line: what is where."""
        from ipydevice.diagnose.describe import describe_text, headline

        if self._finding is not None:
            return headline(self._finding)
        return describe_text(self._mismatch, []).headline

    def finish(self) -> Diagnosis:
        """The whole Diagnosis; lets go of everything alive."""
        from ipydevice.diagnose.describe import describe, describe_text

        try:
            if self._finding is None:
                return describe_text(self._mismatch, self._notes)
            fixes = self._fixes()
            rows = self._rows()
            return describe(self._finding, fixes, rows, self._notes)
        finally:
            self._analysis = self._finding = None

    def _fixes(self) -> list[Fix]:
        from ipydevice import fixes

        try:
            return fixes.propose(self._finding)
        except Exception as error:
            self._failed("looking for fixes", error)
            return []

    def _rows(self) -> list[Row]:
        from ipydevice.diagnose.table import rows_of

        try:
            return rows_of(self._analysis.frames) if self._analysis is not None else []
        except Exception as error:
            self._failed("listing the frames", error)
            return []

    def _failed(self, stage: str, error: Exception) -> None:
        if os.environ.get("IPYDEVICE_DEBUG"):
            raise error
        self._notes.append(f"ipydevice failed while {stage} ({type(error).__name__}); the rest stands")


def _module_namespace(exc: BaseException) -> dict[str, Any]:
    """Outside IPython: the globals of the outermost frame."""
    tb = exc.__traceback__
    return tb.tb_frame.f_globals if tb is not None else {}
