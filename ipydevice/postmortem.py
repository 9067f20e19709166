"""From an exception to a `Diagnosis`: joins the stages and guards each of them.

`begin` finds out whether the exception is a device error at all and names the culprit;
`PostMortem.finish` adds origin, cause, fixes and the table.  What fails in a later stage
costs that part of the diagnosis and a note, never the rest.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from ipydevice.cells import CellHistory
from ipydevice.diagnosis import Diagnosis, Fix, Row

if TYPE_CHECKING:
    from ipydevice.diagnose import Analysis
    from ipydevice.diagnose.finding import Finding
    from ipydevice.messages import Mismatch


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


class PostMortem:
    """One device error being examined. Holds frames and tensors until `finish`; drop it afterwards."""

    def __init__(
        self, exc: BaseException, mismatch: Mismatch, history: CellHistory, namespace: dict[str, Any] | None
    ) -> None:
        from ipydevice.diagnose import Analysis

        self._mismatch = mismatch
        self._notes: list[str] = []
        self._analysis: Analysis | None = None
        self._finding: Finding | None = None
        with self._stage("reading the frames"):
            if namespace is None:
                namespace = _module_namespace(exc)
            self._analysis = Analysis(exc.__traceback__, mismatch, history, namespace)
        with self._stage("naming the culprit"):
            if self._analysis is not None:
                self._analysis.find_culprit()
        with self._stage("telling the cause"):
            if self._analysis is not None:
                self._finding = self._analysis.finding()

    @property
    def finding(self) -> Finding | None:
        """What is known so far, with live objects in it; None after `finish`. A check needs them to repair the call."""
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
            return describe(self._finding, self._fixes(), self._rows(), self._notes)
        finally:
            self._analysis = self._finding = None

    def _fixes(self) -> list[Fix]:
        from ipydevice import fixes

        assert self._finding is not None
        found: list[Fix] = []
        with self._stage("looking for fixes"):
            found = fixes.propose(self._finding)
        return found

    def _rows(self) -> list[Row]:
        from ipydevice.diagnose.table import rows_of

        assert self._analysis is not None
        rows: list[Row] = []
        with self._stage("listing the frames"):
            rows = rows_of(self._analysis.frames)
        return rows

    @contextmanager
    def _stage(self, doing: str) -> Iterator[None]:
        """What fails inside costs this stage and leaves a note; IPYDEVICE_DEBUG=1 raises it instead."""
        try:
            yield
        except Exception as error:  # whatever it is, the user's error comes first
            if os.environ.get("IPYDEVICE_DEBUG"):
                raise
            self._notes.append(f"ipydevice failed while {doing} ({type(error).__name__}); the rest stands")


def _module_namespace(exc: BaseException) -> dict[str, Any]:
    """Outside IPython: the globals of the outermost frame."""
    tb = exc.__traceback__
    return tb.tb_frame.f_globals if tb is not None else {}
