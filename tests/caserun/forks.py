"""Work in forked children: a cheap fresh process, and a snapshot of a live shell on which a fix can be tried.

Only the main thread may be alive and torch must use one thread (libgomp does not survive a fork).
"""

from __future__ import annotations

import os
import pickle
import selectors
import signal
import sys
import traceback
from collections.abc import Callable, Iterator
from typing import Any


class ChildFailedError(Exception):
    """The child raised, died or ran out of time; the text says which."""


def _start(work: Callable[..., Any], args: tuple[Any, ...], timeout: int) -> tuple[int, int]:
    sys.stdout.flush()
    sys.stderr.flush()
    reading, writing = os.pipe()
    pid = os.fork()
    if pid:
        os.close(writing)
        return pid, reading
    code = 0
    try:
        _inherit_cards()
        os.close(reading)
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(timeout)
        try:
            answer: tuple[str, Any] = ("ok", work(*args))
        except BaseException:  # noqa: BLE001 - all of it is told to the parent
            answer = ("raised", traceback.format_exc())
        with os.fdopen(writing, "wb") as pipe:
            pickle.dump(answer, pipe)
    except BaseException:  # noqa: BLE001 - the parent sees that the child died
        code = 1
    finally:
        os._exit(code)


def _inherit_cards() -> None:
    """A snapshot of a session goes on using its virtual cards, which refuse a forked process as CUDA does."""
    cards = sys.modules.get("ipydevice.virtual.cards")
    if cards is not None and cards.process.owner == os.getppid():
        cards.process.owner = os.getpid()


def _answer(pid: int, data: bytes) -> Any:
    _, status = os.waitpid(pid, 0)
    if not data:
        raise ChildFailedError("out of time" if os.WTERMSIG(status) == signal.SIGALRM else f"died with status {status}")
    kind, value = pickle.loads(data)
    if kind == "raised":
        raise ChildFailedError(value)
    return value


def in_fork(work: Callable[..., Any], *args: Any, timeout: int = 60) -> Any:
    """What `work(*args)` returns in a forked child; it must be picklable."""
    pid, reading = _start(work, args, timeout)
    with os.fdopen(reading, "rb") as pipe:
        data = pipe.read()
    return _answer(pid, data)


def map_in_forks(work: Callable[[Any], Any], items: list[Any], parallel: int = 2, timeout: int = 240) -> Iterator[Any]:
    """`work` of each item, one child each, in the order of the items; ChildFailedError where a child failed."""
    waiting = list(enumerate(items))[::-1]
    done: dict[int, Any] = {}
    running: dict[int, tuple[int, int, bytearray]] = {}
    next_out = 0
    with selectors.DefaultSelector() as selector:
        while next_out < len(items):
            while waiting and len(running) < parallel:
                index, item = waiting.pop()
                pid, reading = _start(work, (item,), timeout)
                running[reading] = (index, pid, bytearray())
                selector.register(reading, selectors.EVENT_READ)
            for key, _ in selector.select():
                index, pid, data = running[key.fd]
                chunk = os.read(key.fd, 1 << 16)
                data += chunk
                if chunk:
                    continue
                selector.unregister(key.fd)
                os.close(key.fd)
                del running[key.fd]
                try:
                    done[index] = _answer(pid, bytes(data))
                except ChildFailedError as failed:
                    done[index] = failed
            while next_out in done:
                yield done.pop(next_out)
                next_out += 1
