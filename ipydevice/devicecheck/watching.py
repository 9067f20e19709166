"""One check: opened before the code runs, closed after it, with the report in between."""

from __future__ import annotations

import os
import sys
import threading
import time
from types import FrameType
from typing import Any

from ipydevice import listing
from ipydevice.cells import Cell, CellHistory
from ipydevice.devicecheck import callsite, watched
from ipydevice.devicecheck.dry import Snapshot
from ipydevice.devicecheck.elsewhere import ElsewhereLog
from ipydevice.devicecheck.locations import WarningPlaces
from ipydevice.devicecheck.mode import NOT_MENDED, ExpectingWatch, Numbers, Watch
from ipydevice.devicecheck.optimizers import SingleSteps
from ipydevice.devicecheck.repair import Repairer
from ipydevice.devicecheck.together import all_at_once
from ipydevice.devicecheck.transfers import TransferLog
from ipydevice.devicecheck.watched import Watched
from ipydevice.diagnose.frames import Sources
from ipydevice.diagnosis import Row
from ipydevice.report import CheckReport

_open: list[Check] = []  # checks inside one another, the innermost last


class Check:
    """Watches this thread, and those that it starts, from `start` to `stop`."""

    def __init__(
        self,
        report: CheckReport,
        history: CellHistory,
        namespace: dict[str, Any] | None,
        *,
        expected: str | None = None,
        stop: bool = False,
        dry: bool = False,
        transfers: bool = True,
        cell: Cell | None = None,
        base: callsite.Base | None = None,
    ) -> None:
        self.report = report
        self._history = history
        self._namespace = namespace
        self._expected = expected
        self._dry = dry
        self._cell = cell
        self._table = watched.table()
        if not transfers:
            self._table = {func: each for func, each in self._table.items() if each.draws}
        self.repairer = Repairer(history, namespace, base=base, stops=stop)
        self.log = TransferLog(base)
        self.elsewhere = ElsewhereLog(expected) if expected is not None else None
        self._watches: list[Watch] = []
        self._lock = threading.RLock()
        self._process = os.getpid()
        self._snapshot: Snapshot | None = None
        self.watch: Watch | None = None

    # -- opening and closing -----------------------------------------------------------------------

    def start(self) -> None:
        """From here on calls of torch are looked at."""
        if self._dry and self._namespace is not None:
            self._snapshot = Snapshot(self._namespace)
        if _open:
            _open[-1].pause(True)
        self._steps = SingleSteps()
        self._warnings = WarningPlaces()
        self._thread_run = threading.Thread.run
        threading.Thread.run = self._watched_run()  # type: ignore[method-assign]
        self._began = time.perf_counter()
        self.watch = self._new_watch()
        self.watch.__enter__()  # type: ignore[no-untyped-call]
        _open.append(self)

    def fail(self, error: BaseException) -> None:
        """`error` has ended the code."""
        self.release()
        callsite.cut_own_frames(error)
        self.report.error = type(error).__name__

    def stop(self, error: BaseException | None = None) -> CheckReport:
        """Fill the report. `error` is what ended the code, if anything did."""
        if error is not None:
            self.fail(error)
        self.release()
        self._fill()
        return self.report

    def release(self) -> None:
        """Take out all that listens; again is harmless."""
        if self.watch is None:
            return
        self.watch.remove()
        self.watch = None
        self.report.seconds = time.perf_counter() - self._began
        threading.Thread.run = self._thread_run  # type: ignore[method-assign]
        self._steps.close()
        self._warnings.close()
        for each in self._watches:
            each.paused = True
        if self in _open:
            _open.remove(self)
        if _open:
            _open[-1].pause(False)
            _open[-1].absorb(self)

    def pause(self, paused: bool) -> None:
        for each in self._watches:
            each.paused = paused

    def absorb(self, inner: Check) -> None:
        """What a check inside has seen belongs to this one too."""
        self.repairer.ledger.entries.extend(inner.repairer.ledger.entries)
        self.log.absorb(inner.log)

    def _new_watch(self) -> Watch:
        made = (Watch if self.elsewhere is None else ExpectingWatch)(self, self._table)
        self._watches.append(made)
        return made

    def _watched_run(self) -> Any:
        original = self._thread_run

        def run(thread: threading.Thread) -> None:
            if self.watch is None:
                original(thread)
                return
            with self._new_watch():  # modes belong to a thread
                original(thread)

        return run

    # -- what the mode tells -----------------------------------------------------------------------

    def mend(
        self, error: Exception, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], numbers: Numbers | None
    ) -> Any:
        if os.getpid() != self._process:  # a worker of a loader, whose copy of us nobody reads
            return NOT_MENDED
        with self._lock:
            result = self.repairer.mend(error, _caller(), func, args, kwargs, numbers)
            if self.repairer.ledger.entries:
                for each in self._watches:
                    each.traces = True
            return result

    def made(self, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> None:
        with self._lock:
            self.repairer.ledger.trace([args, kwargs], result)

    def moved(self, watched: Watched, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> None:
        assert watched.measure is not None
        facts = watched.measure(args, kwargs, result)
        if facts is not None:
            with self._lock:
                self.log.note(watched, facts, kwargs, _caller())

    def ran(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> None:
        if self.elsewhere is not None:
            self.elsewhere.note(func, args, kwargs, result, _caller())

    # -- the report --------------------------------------------------------------------------------

    def _fill(self) -> None:
        report, sources = self.report, Sources(self._history)
        report.findings = self.repairer.ledger.findings(sources)
        report.transfers = self.log.transfers(sources)
        report.elsewhere = self.elsewhere.rows(sources) if self.elsewhere is not None else ()
        report.expected = self._expected
        report.stopped = self.repairer.stopped
        report.together = all_at_once(report.findings)
        report.odd = self._odd()
        report.calls = sum(each.calls for each in self._watches)
        report.notes = tuple(dict.fromkeys(self.repairer.notes))
        report.dry = self._dry
        if self._snapshot is not None:
            report.mutated = self._snapshot.restore()
            self._snapshot = None
        if self._cell is not None:
            report.cell, report.cell_id, report.cell_source = self._cell.number, self._cell.cell_id, self._cell.raw
        report.done = True
        del self.repairer, self.log, self.elsewhere  # they hold tensors
        self._watches.clear()

    def _odd(self) -> tuple[Row, ...]:
        """Objects that the cell names and that are odd: mixed devices, tensors that ``.to()`` leaves behind."""
        if self._cell is None or self._namespace is None:
            return ()
        text, _ = self._history.python(self._cell)
        names = [name for name in self._namespace if not name.startswith("_") and name in text]
        if not names:
            return ()
        told = [each.diagnosis.culprit for each in self.report.findings]
        known = {part.split(".")[0].split("[")[0] for each in told if each for part in (each.path or each.expression,)}
        rows = listing.list_namespace({name: self._namespace[name] for name in names}).rows
        return tuple(row for row in rows if row.odd and row.name.split(".")[0].split("[")[0] not in known)


def _caller() -> FrameType | None:
    """The frame whose call of torch is being looked at: the nearest outside of us."""
    frame: FrameType | None = sys._getframe(2)
    while frame is not None and frame.f_code.co_filename.startswith(callsite.OWN_ROOM):
        frame = frame.f_back
    return frame
