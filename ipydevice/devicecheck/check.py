"""``ipydevice.check``: a check around a piece of code, in a notebook, a script or a test."""

from __future__ import annotations

import functools
import inspect
import sys
from types import TracebackType
from typing import Any

import torch

from ipydevice.devicecheck.callsite import Base
from ipydevice.devicecheck.session import around
from ipydevice.devicecheck.watching import Check
from ipydevice.report import CheckReport


class check:  # noqa: N801  (used like a function: `with check() as report:`)
    """Check a piece of code: ``with ipydevice.check("cuda:0") as report: ...``.

    Calls that fail because their operands are on different devices are repaired for this run and
    reported; so are copies between devices and waits for a device.  As a decorator it checks each
    call of a function and keeps the report of the latest one in ``function.report``.

    Args:
        expect: a device such as ``"cuda:0"`` or ``"cuda"``; tensors made or used elsewhere are reported.

    Raises:
        TypeError: `expect` is no name of a device.
    """

    def __init__(self, expect: Any = None) -> None:
        self._expected = expected_device(expect)
        self._checks: list[Check] = []

    def __enter__(self) -> CheckReport:
        caller = sys._getframe(1)
        history, namespace = around(caller)
        opened = Check(CheckReport(), history, namespace, expected=self._expected, base=Base.of(caller))
        self._checks.append(opened)
        opened.start()
        return opened.report

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._checks.pop().stop(value)

    def __call__(self, function: Any) -> Any:
        if inspect.iscoroutinefunction(function):

            @functools.wraps(function)
            async def checked_async(*args: Any, **kwargs: Any) -> Any:
                with check(self._expected) as report:
                    checked_async.report = report  # type: ignore[attr-defined]
                    return await function(*args, **kwargs)

            return checked_async

        @functools.wraps(function)
        def checked(*args: Any, **kwargs: Any) -> Any:
            with check(self._expected) as report:
                checked.report = report  # type: ignore[attr-defined]
                return function(*args, **kwargs)

        return checked


def expected_device(given: Any) -> str | None:
    """The name of a device, as PyTorch spells it; None for None.

    Raises:
        TypeError: `given` is neither a name nor a `torch.device`.
        ValueError: PyTorch knows no such device type.
    """
    if given is None:
        return None
    if type(given) is torch.device:
        return str(given)
    if type(given) is not str:
        raise TypeError(f'expect takes a device, such as "cuda:0", but got an object of type {type(given).__name__}')
    try:
        return str(torch.device(given))
    except RuntimeError:
        raise ValueError(f'expect takes a device, such as "cuda:0" or "cpu", but got {given!r}') from None
