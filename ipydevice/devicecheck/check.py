"""``ipydevice.check``: a check around a piece of code, in a notebook, a script or a test."""

from __future__ import annotations

import inspect
import sys
from types import TracebackType
from typing import Any

import torch

from ipydevice.devicecheck.callsite import Base
from ipydevice.devicecheck.decorating import decorate
from ipydevice.devicecheck.session import around
from ipydevice.devicecheck.watching import Check
from ipydevice.language import say
from ipydevice.report import CheckReport


class check:  # noqa: N801  (used like a function: `with check() as report:`)
    """Check a piece of code: ``with ipydevice.check("cuda:0") as report: ...``.

    Calls that fail because their operands are on different devices are repaired for this run and stand in
    the report: they raise nothing, unless ``stop=True`` lets the first of them raise its error.  Copies
    between devices and waits for a device stand there too.  Nothing is printed; ``print(report)`` shows it.

    As a decorator, with or without brackets, it checks each call of a function, coroutine or generator and
    keeps the report of the call that ended last in ``function.report``; ``@ipydevice.check(stop=True)`` raises.

    Args:
        expect: a device such as ``"cuda:0"`` or ``"cuda"``; tensors made or used elsewhere are reported.
        stop: let the first mistake raise its error, as without the check.
        transfers: list copies and waits.

    Raises:
        TypeError: `expect` is no name of a device; or something else than a function is decorated.
        ValueError: PyTorch knows no such device.
    """

    def __new__(cls, expect: Any = None, **options: Any) -> Any:
        if inspect.isfunction(expect):  # @ipydevice.check
            return cls(**options)(expect)
        return super().__new__(cls)

    def __init__(self, expect: Any = None, *, stop: bool = False, transfers: bool = True) -> None:
        self._options: dict[str, Any] = {"expected": expected_device(expect), "stop": stop, "transfers": transfers}
        self._checks: list[Check] = []

    def __enter__(self) -> CheckReport:
        caller = sys._getframe(1)
        history, namespace = around(caller)
        opened = Check(CheckReport(), history, namespace, base=Base.of(caller), **self._options)
        self._checks.append(opened)
        opened.start()
        return opened.report

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._checks.pop().stop(value)

    def __call__(self, function: Any) -> Any:
        if isinstance(function, type) or not callable(function):
            given = (
                say("the class {kind}", kind=function.__name__)
                if isinstance(function, type)
                else type(function).__name__
            )
            raise TypeError(say("check() decorates a function, coroutine or generator, but got {given}", given=given))
        return decorate(function, self._options)


def expected_device(given: Any, asking: str = "expect") -> str | None:
    """The name of a device, as PyTorch spells it; None for None. `asking` is what takes it, for the error.

    Raises:
        TypeError: `given` is neither a name nor a `torch.device`.
        ValueError: PyTorch knows no such device type.
    """
    if given is None:
        return None
    if type(given) is torch.device:
        return str(given)
    if type(given) is not str:
        raise TypeError(
            say(
                '{asking} takes a device, such as "cuda:0", but got an object of type {kind}',
                asking=asking,
                kind=type(given).__name__,
            )
        )
    try:
        return str(torch.device(given))
    except RuntimeError:
        raise ValueError(
            say('{asking} takes a device, such as "cuda:0" or "cpu", but got {given}', asking=asking, given=repr(given))
        ) from None
