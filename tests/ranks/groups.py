"""Real processes in a real gloo group."""

from __future__ import annotations

import contextlib
import datetime
import multiprocessing
import socket
import sys
import time
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

TIMEOUT = 120  # seconds; a machine may be busy

_context = multiprocessing.get_context("forkserver")
_context.set_forkserver_preload(
    ["torch", "torch._dynamo", "ipydevice.ranks.store", "ipydevice.virtual.session", "ipydevice.fixes"]
)


def run(job: Callable[..., Any], size: int, *given: Any, rendezvous: str = "") -> list[Any]:
    """What `job` returned in each of `size` processes of one group; None of one that has ended before."""
    where = rendezvous or f"tcp://127.0.0.1:{_free_port()}"
    started = []
    for rank in range(size):
        receive, send = _context.Pipe(duplex=False)
        process = _context.Process(target=_member, args=(job, rank, size, where, given, send), daemon=True)
        with _plain_main():
            process.start()
        send.close()
        started.append((process, receive))
    found: list[Any] = []
    for process, receive in started:
        try:
            found.append(receive.recv() if receive.poll(TIMEOUT) else None)
        except EOFError:
            found.append(None)
        process.join(TIMEOUT)
    for result in found:
        if isinstance(result, BaseException):
            raise result
    return found


@contextlib.contextmanager
def _plain_main() -> Iterator[None]:
    """IPython's shells leave a ``__main__`` of theirs, which multiprocessing cannot read."""
    before = sys.modules["__main__"]
    sys.modules["__main__"] = types.ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = before


def rendezvous_file(folder: Path) -> str:
    return f"file://{folder / 'rendezvous'}"


def _member(job: Callable[..., Any], rank: int, size: int, where: str, given: tuple[Any, ...], send: Any) -> None:
    import torch

    torch.set_num_threads(1)
    wait = datetime.timedelta(seconds=30)
    torch.distributed.init_process_group("gloo", init_method=where, rank=rank, world_size=size, timeout=wait)
    try:
        send.send(job(rank, size, *given))
    except BaseException as error:  # noqa: BLE001 (told to the test, which raises it)
        send.send(RuntimeError(f"rank {rank}: {type(error).__name__}: {error}"))
    # Rank 0 keeps the store: the others may still be reading it.
    if rank == 0:
        time.sleep(0.5)


def _free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port: int = one.getsockname()[1]
        return port
