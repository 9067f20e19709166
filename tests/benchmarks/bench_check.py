"""What a check costs: ratios within one run, beside what any watching costs.

    python tests/benchmarks/bench_check.py

Reached for: a small training step at most 1.15 times the pass-through mode, a big product within noise.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

import ipydevice

ROUNDS = 15


class PassThrough(TorchFunctionMode):
    """The least that a torch function mode in Python can do."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return func(*args, **(kwargs or {}))


class Dispatch(TorchDispatchMode):
    """The least that a dispatch mode can do."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return func(*args, **(kwargs or {}))


WATCHES: dict[str, Callable[[], AbstractContextManager[Any]]] = {
    "nothing": nullcontext,
    "pass-through function mode": PassThrough,
    "ipydevice.check()": ipydevice.check,
    'ipydevice.check("cpu")': lambda: ipydevice.check("cpu"),
    "pass-through dispatch mode": Dispatch,
}


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
    for name, (make, repeats) in WORK.items():
        step = make()
        for _ in range(5):
            step()
        taken: dict[str, list[float]] = {watch: [] for watch in WATCHES}
        for _ in range(ROUNDS):  # in turns, and by the time that this thread had: the machine may be busy
            for watch, open_watch in WATCHES.items():
                with open_watch():
                    begin = time.thread_time()
                    for _ in range(repeats):
                        step()
                    taken[watch].append((time.thread_time() - begin) / repeats)
        best = {watch: min(times) for watch, times in taken.items()}
        ratios = [
            ours / theirs
            for ours, theirs in zip(taken["ipydevice.check()"], taken["pass-through function mode"], strict=True)
        ]
        print(f"{name}: {best['nothing'] * 1e6:.0f} us")
        for watch in list(WATCHES)[1:]:
            print(f"    {watch:<28} x{best[watch] / best['nothing']:.2f}")
        overall = best["ipydevice.check()"] / best["pass-through function mode"]
        print(f"    check to pass-through: best of all {overall:.3f}, median of rounds {statistics.median(ratios):.3f}")


if __name__ == "__main__":
    main()
