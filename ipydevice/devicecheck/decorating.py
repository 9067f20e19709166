"""A check around each call of a function. Of a generator its body is checked, not the code that it yields to."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from ipydevice.devicecheck.callsite import Base
from ipydevice.devicecheck.session import among
from ipydevice.devicecheck.watching import Check
from ipydevice.report import CheckReport

Function = Callable[..., Any]


def decorate(function: Function, options: dict[str, Any]) -> Function:
    """`function` with a check around it; the report of the call that ended last is its attribute `report`."""
    kinds: tuple[tuple[Callable[[Any], bool], Callable[[Function, Any], Function]], ...] = (
        (inspect.isasyncgenfunction, _async_generator),
        (inspect.iscoroutinefunction, _coroutine),
        (inspect.isgeneratorfunction, _generator),
    )
    make = next((make for is_one, make in kinds if is_one(function)), _plain)

    @contextmanager
    def checking() -> Iterator[Check]:
        history, namespace = among(getattr(inspect.unwrap(function), "__globals__", {}))
        check = Check(CheckReport(), history, namespace, base=Base(wrapper.__code__, 0), **options)
        check.start()
        try:
            yield check
        except BaseException as error:
            check.fail(error)
            raise
        finally:
            wrapper.report = check.stop()

    wrapper: Any = make(function, checking)
    return functools.update_wrapper(wrapper, function)


def _plain(function: Function, checking: Any) -> Function:
    def checked(*args: Any, **kwargs: Any) -> Any:
        with checking():
            return function(*args, **kwargs)

    return checked


def _coroutine(function: Function, checking: Any) -> Function:
    async def checked(*args: Any, **kwargs: Any) -> Any:
        with checking():
            return await function(*args, **kwargs)

    return checked


def _generator(function: Function, checking: Any) -> Function:
    def checked(*args: Any, **kwargs: Any) -> Any:
        with checking() as check:
            generator = function(*args, **kwargs)
            step: Callable[[], Any] = functools.partial(next, generator)
            while True:
                try:
                    item = step()
                except StopIteration as end:
                    return end.value
                try:
                    with check.aside():
                        sent = yield item
                except GeneratorExit:
                    generator.close()
                    raise
                except BaseException as error:  # noqa: BLE001  (thrown in by the consumer, and handed on)
                    step = functools.partial(generator.throw, error)
                else:
                    step = functools.partial(generator.send, sent)

    return checked


def _async_generator(function: Function, checking: Any) -> Function:
    async def checked(*args: Any, **kwargs: Any) -> Any:
        with checking() as check:
            generator = function(*args, **kwargs)
            step = generator.__anext__()
            while True:
                try:
                    item = await step
                except StopAsyncIteration:
                    return
                try:
                    with check.aside():
                        sent = yield item
                except GeneratorExit:
                    await generator.aclose()
                    raise
                except BaseException as error:  # noqa: BLE001  (thrown in by the consumer, and handed on)
                    step = generator.athrow(error)
                else:
                    step = generator.asend(sent)

    return checked
