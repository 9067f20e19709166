"""What a check costs: ratios within one run, beside what any watching costs.

    python tests/benchmarks/bench_check.py

Reached for: a small training step at most 1.15 times the pass-through mode, a big product within noise, nothing
afterwards.  What a check does once, when it is opened and closed and when a model is first called, stands by itself.
"""

from __future__ import annotations

import io
import statistics
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

import ipydevice

try:
    import pysnooper
except ImportError:
    pysnooper = None

ROUNDS = 15


class PassThrough(TorchFunctionMode):
    """The least that a torch function mode in Python can do."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return func(*args, **(kwargs or {}))


class Dispatch(TorchDispatchMode):
    """The least that a dispatch mode can do."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return func(*args, **(kwargs or {}))


def snoop() -> AbstractContextManager[Any]:
    """PySnooper writes every line that runs with its variables; it is not about devices, but people know its cost."""
    return pysnooper.snoop(output=io.StringIO(), depth=2) if pysnooper is not None else nullcontext()


WATCHES: dict[str, Callable[[], AbstractContextManager[Any]]] = {
    "nothing": nullcontext,
    "pass-through function mode": PassThrough,
    "ipydevice.check()": ipydevice.check,
    'ipydevice.check("cpu")': lambda: ipydevice.check("cpu"),
    "pass-through dispatch mode": Dispatch,
    "PySnooper, two levels deep": snoop,
    "nothing, after the checks": nullcontext,
}
OURS = ("ipydevice.check()", 'ipydevice.check("cpu")')
FEW = 2  # rounds of what takes a hundred times as long


def training_step() -> Callable[[], None]:
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(32, 64), torch.nn.ReLU(), torch.nn.Linear(64, 64), torch.nn.ReLU(),
                                torch.nn.Linear(64, 10))  # fmt: skip
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    x, y = torch.randn(16, 32), torch.randint(0, 10, (16,))

    def step() -> None:
        loss = torch.nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        loss.item()

    return step


def small_calls() -> Callable[[], None]:
    x = torch.ones(3)

    def step() -> None:
        for _ in range(20):
            x + x

    return step


def big_product() -> Callable[[], None]:
    x = torch.randn(1024, 1024)

    def step() -> None:
        x @ x

    return step


WORK: dict[str, tuple[Callable[[], Callable[[], None]], int]] = {
    "small training step": (training_step, 40),
    "20 additions of three numbers": (small_calls, 100),
    "1024 x 1024 product": (big_product, 3),
}


def main() -> None:
    torch.set_num_threads(1)
    if pysnooper is None:
        print("PySnooper is not installed (pip install pysnooper), so its row says nothing")
    for name, (make, repeats) in WORK.items():
        step = make()
        for _ in range(5):
            step()
        taken: dict[str, list[float]] = {watch: [] for watch in WATCHES}
        for number in range(ROUNDS):  # in turns, and by the time that this thread had: the machine may be busy
            for watch, open_watch in WATCHES.items():
                slow = watch.startswith("PySnooper")
                if slow and number >= FEW:
                    continue
                with open_watch():
                    step()  # what is looked at once
                    times = 1 if slow else repeats
                    begin = time.thread_time()
                    for _ in range(times):
                        step()
                    taken[watch].append((time.thread_time() - begin) / times)
        best = {watch: min(times) for watch, times in taken.items()}
        print(f"{name}: {best['nothing'] * 1e6:.0f} us")
        for watch in list(WATCHES)[1:]:
            print(f"    {watch:<28} x{best[watch] / best['nothing']:.2f}")
        mode = "pass-through function mode"
        for ours in OURS:
            ratios = [one / other for one, other in zip(taken[ours], taken[mode], strict=True)]
            overall = best[ours] / best[mode]
            print(
                f"    {ours} to the mode: best of all {overall:.3f}, median of rounds {statistics.median(ratios):.3f}"
            )
    once()


def once() -> None:
    """Opening, the first call of a model, closing with a report; against the training step that they surround."""
    step = training_step()
    for _ in range(5):
        step()
    plain, checked = [], []
    for _ in range(ROUNDS):
        begin = time.thread_time()
        step()
        plain.append(time.thread_time() - begin)
        begin = time.thread_time()
        with ipydevice.check():
            step()
        checked.append(time.thread_time() - begin)
    print(f"a check around one step, with all that it does once: x{min(checked) / min(plain):.1f}")


if __name__ == "__main__":
    main()
