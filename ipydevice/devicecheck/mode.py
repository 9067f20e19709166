"""The torch function mode of a check: lets every call run, and acts when one fails or moves something."""

from __future__ import annotations

import types as python_types
from typing import Any, Protocol

import torch
from torch import overrides
from torch.overrides import TorchFunctionMode

from ipydevice.devicecheck.watched import Watched

NOT_MENDED = object()


class Listener(Protocol):
    """Who is told."""

    def mend(
        self, error: Exception, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], numbers: Numbers | None
    ) -> Any:
        """The result of the call after all, or NOT_MENDED."""

    def moved(self, watched: Watched, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> None:
        """A call of the table has worked."""

    def made(self, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> None:
        """Any call has worked; asked for only once a stray is known."""

    def ran(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> None:
        """A call has worked that may have to do with another device than the one expected."""


class Watch(TorchFunctionMode):
    """Sees the user's calls as they are written: inside of an ``F.*`` function, and of us, it is off."""

    def __init__(self, listener: Listener, watched: dict[Any, Watched]) -> None:
        super().__init__()
        self.listener = listener
        self.calls = 0
        self.paused = False  # while a check inside this one is listening
        self.traces = False  # since a stray is known: what is computed from it is told
        self._watched = watched.get

    # The way of every good call: one look into a dictionary on top of what any mode costs.
    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        self.calls += 1
        if self._watched(func) is not None:
            return self._look(func, args, kwargs or {})
        try:
            result = func(*args, **kwargs) if kwargs else func(*args)
        except Exception as error:
            if self.paused:
                raise
            result = self.listener.mend(error, func, args, kwargs or {}, None)
            if result is NOT_MENDED:
                raise
            return result
        if self.traces:
            self.listener.made(args, kwargs or {}, result)
        return result

    def _look(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if self.paused:
            return func(*args, **kwargs)
        watched = self._watched(func)
        assert watched is not None
        numbers = Numbers() if watched.draws else None
        try:
            result = func(*args, **kwargs)
        except Exception as error:
            result = self.listener.mend(error, func, args, kwargs, numbers)
            if result is NOT_MENDED:
                raise
            return result
        if watched.measure is not None:
            self.listener.moved(watched, args, kwargs, result)
        if self.traces:
            self.listener.made(args, kwargs, result)
        return result

    def remove(self) -> None:
        """Leave this thread's stack of modes, from under modes that the code has left there."""
        above: list[Any] = []
        stack = overrides._get_current_function_mode_stack()  # type: ignore[no-untyped-call]
        if not any(mode is self for mode in stack):
            return
        while True:
            mode = overrides._pop_mode()  # type: ignore[no-untyped-call]
            if mode is self:
                break
            above.append(mode)
        for mode in reversed(above):
            overrides._push_mode(mode)  # type: ignore[no-untyped-call]


_Tensor, _Parameter = torch.Tensor, torch.nn.Parameter
_HOLDING = (torch.Tensor, tuple, list, dict)
_ACCESSOR = python_types.MethodWrapperType  # `x.shape`, `x.device` and `x.grad` come as these: no use of x
_run = Watch.__torch_function__


class ExpectingWatch(Watch):
    """Also tells of calls with tensors elsewhere than on the expected device: for ``%%devicecheck cuda:0``."""

    def __init__(self, listener: Listener, watched: dict[Any, Watched], expected: set[torch.device]) -> None:
        super().__init__(listener, watched)
        self.expected = expected  # grows as the listener meets them: "cuda" is every card
        self._plain: set[type] = {torch.Size}  # types of which no object is a tensor or holds some

    # Every call passes here, and a look at a device takes about as long as all the rest of the watch.
    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        result = _run(self, func, types, args, kwargs)
        if type(func) is _ACCESSOR:
            return result
        expected = self.expected
        if type(result) is _Tensor and result.device in expected and self._watched(func) is None:
            return result  # what it was computed from is there too, or the call would have failed
        plain = self._plain
        for value in (*args, *kwargs.values(), result) if kwargs else (*args, result):
            kind = type(value)
            if kind in plain:
                continue
            if kind is _Tensor or kind is _Parameter:
                if value.device in expected:
                    continue
            elif not issubclass(kind, _HOLDING):
                plain.add(kind)
                continue
            self.listener.ran(func, args, kwargs or {}, result)
            break
        return result


class Numbers:
    """The state of the random numbers before a composite call, for a second attempt."""

    def __init__(self) -> None:
        self._host = torch.get_rng_state()
        # Virtual cards have no generators of their own: all numbers come from the host's.
        self._cards = torch.cuda.get_rng_state_all() if torch.version.cuda and _cards_in_use() else []

    def restore(self) -> None:
        torch.set_rng_state(self._host)
        if self._cards:
            torch.cuda.set_rng_state_all(self._cards)


def _cards_in_use() -> bool:
    return bool(torch.cuda.is_initialized())  # type: ignore[no-untyped-call]
