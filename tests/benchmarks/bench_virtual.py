"""What virtual GPUs cost: ratios to plain CPU, taken in one run.

python tests/benchmarks/bench_virtual.py
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

from ipydevice.virtual import virtual_gpus

Step = Callable[[], Any]


def mlp_step(device: str) -> Step:
    model = nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10)).to(device)
    optimizer = torch.optim.Adam(model.parameters())
    x, y = torch.rand(64, 32, device=device), torch.randint(0, 10, (64,), device=device)

    def step() -> None:
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()

    return step


def conv_step(device: str) -> Step:
    model = nn.Sequential(nn.Conv2d(3, 16, 3), nn.BatchNorm2d(16), nn.ReLU(), nn.Flatten(), nn.LazyLinear(10)).to(
        device
    )
    x, y = torch.rand(16, 3, 24, 24, device=device), torch.randint(0, 10, (16,), device=device)
    model(x)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)

    def step() -> None:
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()

    return step


def matmul(device: str) -> Step:
    a, b = torch.rand(512, 512, device=device), torch.rand(512, 512, device=device)
    return lambda: a @ b


def small_add(device: str) -> Step:
    a = torch.rand(8, device=device)
    return lambda: a + a


def move(device: str) -> Step:
    a = torch.rand(64, 64)
    return lambda: a.to(device)


def factory(device: str) -> Step:
    return lambda: torch.zeros(8, device=device)


CASES: dict[str, tuple[Callable[[str], Step], int, float | None]] = {
    "MLP with Adam, one training step": (mlp_step, 40, 4.0),
    "convolution with batch norm, one training step": (conv_step, 20, None),
    "512x512 matmul": (matmul, 40, 1.1),
    "sum of 8 numbers": (small_add, 2000, None),
    "factory of 8 numbers": (factory, 2000, None),
    "64x64 copy to the card": (move, 1000, None),
}


def best(step: Step, repeats: int, rounds: int) -> float:
    """Seconds of one call, the fastest of some rounds."""
    found = float("inf")
    for _ in range(rounds):
        start = time.perf_counter()
        for _ in range(repeats):
            step()
        found = min(found, (time.perf_counter() - start) / repeats)
    return found


def compare(make: Callable[[str], Step], repeats: int) -> tuple[float, float]:
    plain, virtual = float("inf"), float("inf")
    for _ in range(5):  # in turns, so that a busy moment hits both
        step = make("cpu")
        step()
        plain = min(plain, best(step, repeats, 2))
        with virtual_gpus(2):
            step = make("cuda:0")
            step()
            virtual = min(virtual, best(step, repeats, 2))
    return plain, virtual


def enabling() -> float:
    """Seconds for the first enable() of a process, after `import torch`."""
    code = (
        "import time, torch; from ipydevice.virtual import virtual_gpus; start = time.perf_counter();"
        "virtual_gpus(2).enable(); print(time.perf_counter() - start)"
    )
    runs = [subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True) for _ in range(3)]
    return min(float(run.stdout) for run in runs)


def main() -> None:
    torch.set_num_threads(1)
    print(f"{'':50} {'plain us':>10} {'virtual us':>10} {'ratio':>7} {'target':>7}")
    for name, (make, repeats, target) in CASES.items():
        plain, virtual = compare(make, repeats)
        wanted = "" if target is None else f"{target:.1f}"
        print(f"{name:50} {plain * 1e6:10.1f} {virtual * 1e6:10.1f} {virtual / plain:7.2f} {wanted:>7}")
    print(f"{'enabling, first time (seconds)':50} {'':10} {enabling():10.3f} {'':7} {0.3:7}")


if __name__ == "__main__":
    main()
