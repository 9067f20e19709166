"""One check: opened before the code runs, closed after it, with the report in between."""

from __future__ import annotations

import os
import re
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from types import FrameType
from typing import Any

from ipydevice import listing
from ipydevice.cells import Cell, CellHistory
from ipydevice.devicecheck import callsite, nesting, threads, watched
from ipydevice.devicecheck.called import CalledModules
from ipydevice.devicecheck.dry import Snapshot
from ipydevice.devicecheck.elsewhere import ElsewhereLog
from ipydevice.devicecheck.locations import WarningPlaces
from ipydevice.devicecheck.mode import NOT_MENDED, ExpectingWatch, Numbers, Watch
from ipydevice.devicecheck.optimizers import SingleSteps
from ipydevice.devicecheck.repair import Repairer
from ipydevice.devicecheck.together import all_at_once
from ipydevice.devicecheck.transfers import TransferLog
from ipydevice.devicecheck.waits import Waits
from ipydevice.devicecheck.watched import Facts, Watched
from ipydevice.diagnose.frames import Sources
from ipydevice.diagnosis import Fix, Row
from ipydevice.language import say
from ipydevice.report import CheckReport


def _costs_only_the_report(look: Callable[..., None]) -> Callable[..., None]:
    """A call of the user's has worked. Whatever fails in looking at it is ours, and a note in the report."""

    @wraps(look)
    def looked(check: Check, *given: Any) -> None:
        try:
            look(check, *given)
        except Exception as ours:
            if os.environ.get("IPYDEVICE_DEBUG") == "1":
                raise
            check.notes[say("ipydevice failed while looking at a call ({error})", error=type(ours).__name__)] = None

    return looked


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
        self.outer: Check | None = None  # the check around this one
        self.notes: dict[str, None] = {}  # what has gone wrong with the check itself, each once
        self._history = history
        self._namespace = namespace
        self._expected = expected
        self._dry = dry
        self._cell = cell
        self._table = watched.table()
        self._transfers = transfers
        if not transfers:
            self._table = {func: each for func, each in self._table.items() if each.draws}
        self.repairer = Repairer(history, namespace, base=base, stops=stop)
        self.log = TransferLog(base)
        self.elsewhere = ElsewhereLog(expected) if expected is not None else None
        self._watches: list[Watch] = []
        self._lock = threading.RLock()
        self._process = os.getpid()
        self._snapshot: Snapshot | None = None
        self._watch: Watch | None = None

    # -- opening and closing -----------------------------------------------------------------------

    @property
    def is_open(self) -> bool:
        """Whether it still watches."""
        return self._watch is not None

    def start(self) -> None:
        """From here on calls of torch are looked at."""
        if self._dry and self._namespace is not None:
            self._snapshot = Snapshot(self._namespace)
            self._table |= self._snapshot.watched()
        self.outer = nesting.innermost()
        self._steps = SingleSteps()
        self._waits = Waits(self._waited) if self._transfers else None
        self._warnings = WarningPlaces()
        self._modules = CalledModules(Sources(self._history), self._namespace)
        threads.listen()
        self._began = time.perf_counter()
        self._watch = self._new_watch()
        self._watch.__enter__()  # type: ignore[no-untyped-call]
        nesting.enter(self)
        nesting.settle()

    def fail(self, error: BaseException) -> None:
        """`error` has ended the code."""
        self.release()
        callsite.cut_own_frames(error)
        self.report.error = type(error).__name__

    def stop(self, error: BaseException | None = None) -> CheckReport:
        """Fill the report. `error` is what ended the code, if anything did."""
        if error is not None:
            self.fail(error)
            self.repairer.note_fatal(error)
        self.release()
        self._fill()
        return self.report

    def release(self) -> None:
        """Take out all that listens; again is harmless."""
        if self._watch is None:
            return
        self._watch.remove()
        self._watch = None
        self.report.seconds = time.perf_counter() - self._began
        threads.ignore()
        self._modules.close()
        self._steps.close()
        if self._waits is not None:
            self._waits.close()
        self._warnings.close()
        for each in self._watches:
            each.paused = True
        nesting.enter(nesting.innermost())
        nesting.settle()

    @contextmanager
    def aside(self) -> Iterator[None]:
        """Inside of it other code runs: what a checked generator has yielded to."""
        if self._watch is not None:
            self._watch.remove()
            nesting.enter(self.outer)
            nesting.settle()
        try:
            yield
        finally:
            if self._watch is not None:
                self._watch.__enter__()  # type: ignore[no-untyped-call]
                nesting.enter(self)
                nesting.settle()

    @contextmanager
    def watching_thread(self) -> Iterator[None]:
        """Inside of it a thread that the code has started is looked at."""
        nesting.enter(self)
        if not self.is_open:
            yield
            return
        with self._new_watch():
            yield

    def _new_watch(self) -> Watch:
        if self.elsewhere is None:
            made = Watch(self, self._table)
        else:
            made = ExpectingWatch(self, self._table, self.elsewhere.expected_devices)
        self._watches.append(made)
        return made

    def seen(self) -> tuple[int, int, int]:
        """So far: calls, copies and waits, mistakes. From any thread."""
        with self._lock:
            calls = sum(each.calls for each in self._watches)
            return calls, self.log.total, len(self.repairer.ledger.entries)

    # -- what the mode tells -----------------------------------------------------------------------

    def mend(
        self, error: Exception, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], numbers: Numbers | None
    ) -> Any:
        owner = nesting.innermost()  # where tasks take turns in one thread, not always this one
        if owner is None or os.getpid() != self._process:  # a worker of a loader, whose copy of us nobody reads
            return NOT_MENDED
        with owner._lock:
            result = owner.repairer.mend(error, _caller(), func, args, kwargs, numbers)
            if owner.repairer.ledger.entries:
                for each in (*owner._watches, *self._watches):
                    each.traces = True
            return result

    @_costs_only_the_report
    def made(self, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> None:
        owner = nesting.innermost()
        if owner is not None:
            with owner._lock:
                owner.repairer.ledger.trace([args, kwargs], result)

    @_costs_only_the_report
    def moved(self, watched: Watched, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> None:
        assert watched.measure is not None
        facts = watched.measure(args, kwargs, result)
        owner = nesting.innermost()
        if facts is not None and owner is not None:
            with owner._lock:
                if owner.log.note(watched, facts, kwargs, _caller()):
                    self._modules.forget()

    @_costs_only_the_report
    def _waited(self, watched: Watched, facts: Facts, caller: FrameType) -> None:
        """Of checks inside one another each is told, and the innermost writes it down."""
        owner = nesting.innermost()
        if owner is self:
            with owner._lock:
                owner.log.note(watched, facts, {}, caller)

    @_costs_only_the_report
    def ran(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> None:
        if self.elsewhere is not None and self.is_open and nesting.innermost() is not None:
            with self._lock:
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
        report.odd, report.mends = self._odd()
        report.calls = sum(each.calls for each in self._watches)
        report.notes = tuple(dict.fromkeys((*self.repairer.notes, *self.notes)))
        report.dry = self._dry
        if self._snapshot is not None:
            report.mutated = self._snapshot.restore()
            self._snapshot = None
        if self._cell is not None:
            report.cell, report.cell_id, report.cell_source = self._cell.number, self._cell.cell_id, self._cell.raw
        report.done = True
        if self.outer is not None and self.outer.is_open:  # what a check inside has seen belongs to the outer too
            with self.outer._lock:
                self.outer.repairer.ledger.absorb(self.repairer.ledger)
                self.outer.log.absorb(self.log)
        del self.repairer, self.log, self._modules  # they hold tensors
        self.elsewhere = None
        self._watches.clear()

    def _odd(self) -> tuple[tuple[Row, ...], tuple[Fix, ...]]:
        """Modules that were called, and objects that the cell names, with tensors that are stray in them."""
        rows, fixes = dict(self._modules.rows), dict(self._modules.fixes)
        if self._cell is not None and self._namespace is not None:
            text, _ = self._history.python(self._cell)
            words = set(_NAME.findall(text))
            named = {name: value for name, value in self._namespace.items() if name in words and name[0] != "_"}
            if named:
                listed = listing.select(named, odd_only=True)
                rows = {row.name: row for row in listed.rows} | rows
                fixes = {fix.title: fix for fix in listed.fixes} | fixes
        found = [each.diagnosis for each in self.report.findings]
        known = {_root(each.culprit.path or each.culprit.expression) for each in found if each.culprit}
        splits = any(each.cause == "model_split_multi_gpu" for each in found)
        objects = {**(self._namespace or {}), **self._modules.modules}
        left = tuple(
            row
            for name, row in rows.items()
            if _root(name) not in known
            and not (splits and row.kind == "module")  # it is meant to be split, and a move was forgotten
            and not self.repairer.ledger.knows_inside(objects.get(name))
        )
        names = self._namespace or {}
        mending = {row.remedy for row in left if _root(row.name) in names}  # of a local no new cell can speak
        return left, tuple(fix for fix in fixes.values() if fix.setup in mending)


_NAME = re.compile(r"[^\W\d]\w*")


def _root(name: str) -> str:
    return name.split(".")[0].split("[")[0]


def _caller() -> FrameType | None:
    """The frame whose call of torch is being looked at: the nearest outside of us."""
    frame: FrameType | None = sys._getframe(2)
    while frame is not None and frame.f_code.co_filename.startswith(callsite.OWN_ROOM):
        frame = frame.f_back
    return frame
