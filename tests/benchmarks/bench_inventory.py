"""What the table costs beside its peers, in one run. Ratios count; nothing is asserted.

python tests/benchmarks/bench_inventory.py
"""

from __future__ import annotations

import contextlib
import io
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

import torch
from torch import nn

from ipydevice import placement, show
from ipydevice.listing import list_namespace

RUNS = 7


def best(work: Callable[[], Any], runs: int = RUNS) -> float:
    """Least milliseconds of some runs."""
    return best_of_each([work], runs)[0]


def best_of_each(works: list[Callable[[], Any]], runs: int = RUNS) -> list[float]:
    """The same of several, by turns: the machine is shared, so the thread's own time counts, and the least of it."""
    times: list[list[float]] = [[] for _ in works]
    for _ in range(runs):
        for work, taken in zip(works, times, strict=True):
            start = time.thread_time()
            work()
            taken.append(time.thread_time() - start)
    return [min(taken) * 1e3 for taken in times]


def tensors(count: int) -> dict[str, Any]:
    return {f"t{i}": torch.ones(3) for i in range(count)}


def shell_with(space: dict[str, Any]) -> Any:
    from IPython.core.interactiveshell import InteractiveShell

    shell = InteractiveShell.instance()
    shell.run_line_magic("load_ext", "ipydevice")
    shell.user_ns.update(space)
    return shell


def quietly(shell: Any, magic: str, line: str) -> None:
    with contextlib.redirect_stdout(io.StringIO()):
        shell.run_line_magic(magic, line)


def workspace() -> None:
    print("a workspace of tensors")
    for count in (1_000, 10_000, 100_000):
        space = tensors(count)
        took = best(lambda space=space: list_namespace(space), runs=3)
        print(f"  {count:>7,} to rows             {took:8.1f} ms   {took / count * 1e3:6.2f} us each")
    shell = shell_with(tensors(10_000))
    space = shell.user_ns
    listed = list_namespace(space)
    works = {
        "rows": lambda: list_namespace(space),
        "rows to text": lambda: show.text(listed),
        "rows and text": lambda: show.text(list_namespace(space)),
        "%devices --plain": lambda: quietly(shell, "devices", "--plain"),
        "%whos": lambda: quietly(shell, "whos", ""),
    }
    print("10,000 tensors in a shell, by turns")
    took = best_of_each(list(works.values()), runs=5)
    for what, time_of_it in zip(works, took, strict=True):
        print(f"  {what:<22}    {time_of_it:8.1f} ms   %whos takes {took[-1] / time_of_it:6.1f} times as long")


def model(name: str, net: nn.Module) -> None:
    def peer() -> set[torch.device]:
        return {p.device for _, p in net.named_parameters()} | {b.device for _, b in net.named_buffers()}

    count = sum(1 for _ in net.parameters()) + sum(1 for _ in net.buffers())
    works = {
        "named_parameters + buffers": peer,
        "devices_of": lambda: placement.devices_of(net),
        "row of the table": lambda: list_namespace({"net": net}),
    }
    print(f"{name}, {count:,} tensors")
    took = best_of_each(list(works.values()), runs=11)
    for what, time_of_it in zip(works, took, strict=True):
        print(f"  {what:<28}  {time_of_it:8.1f} ms  {time_of_it / took[0]:6.2f}")


class Block(nn.Module):
    """A transformer block with the plain attributes that such blocks have."""

    def __init__(self) -> None:
        super().__init__()
        self.q, self.k, self.v, self.o = (nn.Linear(4, 4) for _ in range(4))
        self.norm1, self.norm2 = nn.LayerNorm(4), nn.LayerNorm(4)
        self.up, self.down = nn.Linear(4, 8), nn.Linear(8, 4)
        self.config = {"heads": 2, "names": ["a", "b"]}
        self.heads, self.dim = 2, 4


def main() -> None:
    torch.set_num_threads(1)
    workspace()
    model("5,000 Linear layers", nn.ModuleList([nn.Linear(2, 2) for _ in range(5_000)]))
    model("625 transformer blocks", nn.ModuleList([Block() for _ in range(625)]))


if __name__ == "__main__":
    main()
