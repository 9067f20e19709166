"""Copies and waits by line, with their times, and the standard trace of torch.profiler."""

from __future__ import annotations

import html
import os
import sys
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from ipydevice.devicecheck import callsite, watched
from ipydevice.devicecheck.transfers import TransferLog
from ipydevice.report import Transfer
from ipydevice.show import quantities
from ipydevice.toolbox import accelerators
from ipydevice.toolbox.callers import sources_of


@dataclass(frozen=True, slots=True)
class TimedTransfer:
    """One line that copies between devices or waits for one."""

    transfer: Transfer
    host_seconds: float  # that the host spent in the call, all times together
    device_seconds: float  # of the device's own work in it; 0.0 where the profiler does not see the device

    def __str__(self) -> str:
        t = self.transfer
        times = f" ×{t.count:,}" if t.count > 1 else ""
        device = f", device {_duration(self.device_seconds)}" if self.device_seconds else ""
        advice = f"; {t.advice}" if t.advice else ""
        return (
            f"{t.place}: {t.expression or t.call}  {t.kind} {t.source} → {t.target}{times}  "
            f"{quantities.size(t.bytes)}  host {_duration(self.host_seconds)}{device}{advice}"
        )


class device_timeline:  # noqa: N801  (used like a function: `with device_timeline() as timeline:`)
    """``with device_timeline() as timeline:`` profiles a block and tells which lines copy between devices or wait.

    A cell that ends with ``timeline`` shows the table, the longest line first. ``timeline.export("trace.json")``
    writes the trace that chrome://tracing and https://ui.perfetto.dev read; each copy and wait stands in it under
    its line. Wraps `torch.profiler.profile`, whose object is ``timeline.profiler``: ``key_averages()`` and all else.

    Args:
        options: handed on to `torch.profiler.profile`: ``record_shapes=True``, ``profile_memory=True``, ...

    Attributes:
        rows: copies and waits by line, `TimedTransfer`, filled at the end of the block.
    """

    def __init__(self, **options: Any) -> None:
        self._options = options
        self.rows: tuple[TimedTransfer, ...] = ()
        self.seconds = 0.0
        self.profiler: Any = None

    def __enter__(self) -> device_timeline:
        caller = sys._getframe(1)
        self._sources = sources_of(caller)
        self._log = TransferLog(callsite.Base.of(caller))
        self._names: dict[Any, str] = {}
        options = {"activities": _activities(), **self._options}
        self.profiler = torch.profiler.profile(**options)
        self.profiler.__enter__()
        self._mode = _Lines(self)
        self._mode.__enter__()  # type: ignore[no-untyped-call]
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._mode.__exit__(kind, value, traceback)  # type: ignore[no-untyped-call]
        self.profiler.__exit__(kind, value, traceback)
        host: dict[str, float] = defaultdict(float)
        device: dict[str, float] = defaultdict(float)
        names = set(self._names.values())
        for event in self.profiler.events() or ():
            if event.name in names:
                host[event.name] += event.cpu_time_total / 1e6
                device[event.name] += getattr(event, "device_time_total", 0) / 1e6
        rows = [
            TimedTransfer(transfer, host[name], device[name])
            for transfer in self._log.transfers(self._sources)
            for name in (_label(transfer.place, transfer.call),)
        ]
        self.rows = tuple(sorted(rows, key=lambda row: -max(row.host_seconds, row.device_seconds)))
        del self._log, self._mode, self._sources  # they hold tensors and frames' texts

    def export(self, path: str | os.PathLike[str]) -> Path:
        """Write the trace, in Chrome's format, and return where.

        Raises:
            RuntimeError: the block is not over.
        """
        if self.profiler is None or hasattr(self, "_log"):
            raise RuntimeError("the timeline is written after its with block")
        self.profiler.export_chrome_trace(str(path))
        return Path(path)

    def run(self, watch: watched.Watched, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], frame: Any) -> Any:
        """One call that may copy or wait, under the name of its line."""
        caller = callsite.nearest(frame)
        if caller is None:
            return func(*args, **kwargs)
        key = caller.f_code, caller.f_lasti, watch.call
        name = self._names.get(key)
        if name is None:
            place = callsite.place_of(caller.f_code, caller.f_lineno, self._sources)
            name = self._names[key] = _label(place, watch.call)
        with torch.profiler.record_function(name):
            result = func(*args, **kwargs)
        facts = watch.measure(args, kwargs, result) if watch.measure is not None else None
        if facts is not None:
            self._log.note(watch, facts, kwargs, frame)
        return result

    def __str__(self) -> str:
        if not self.rows:
            return "no copies between devices and no waits"
        return "\n".join(map(str, self.rows))

    __repr__ = __str__

    def _repr_html_(self) -> str:
        if not self.rows:
            return f"<p>{self}</p>"
        heads = "".join(f"<th scope='col'>{head}</th>" for head in _HEADS)
        lines = "".join(
            f"<tr>{''.join(f'<td>{html.escape(cell)}</td>' for cell in _cells(row))}</tr>" for row in self.rows
        )
        return f"<table><thead><tr>{heads}</tr></thead><tbody>{lines}</tbody></table>"


def _cells(row: TimedTransfer) -> tuple[str, ...]:
    t = row.transfer
    device = _duration(row.device_seconds) if row.device_seconds else ""
    way = f"{t.source} → {t.target}"
    amount = f"{t.count:,}", quantities.size(t.bytes)
    return str(t.place), t.expression or t.call, t.kind, way, *amount, _duration(row.host_seconds), device, t.advice


_HEADS = ("line", "call", "kind", "way", "times", "bytes", "host", "device", "what saves it")


class _Lines(TorchFunctionMode):
    def __init__(self, timeline: device_timeline) -> None:
        super().__init__()
        self._timeline = timeline
        self._watched = watched.table()

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        watch = self._watched.get(func)
        if watch is None or watch.measure is None:
            return func(*args, **(kwargs or {}))
        return self._timeline.run(watch, func, args, kwargs or {}, sys._getframe(1))


def _activities() -> list[Any]:
    found = [torch.profiler.ProfilerActivity.CPU]
    kind = (accelerators.kind() or "").upper()
    supported: Any = torch.profiler.supported_activities()  # type: ignore[no-untyped-call]
    return found + [activity for activity in supported if activity.name == kind]


def _label(place: Any, call: str) -> str:
    return f"{place}: {call}"


def _duration(seconds: float) -> str:
    return (
        f"{seconds:.2f} s"
        if seconds >= 1
        else f"{seconds * 1e3:.1f} ms"
        if seconds >= 1e-4
        else f"{seconds * 1e6:.0f} µs"
    )
