"""What a diagnosis costs, beside IPython's own formatting of the same error in the same run. Nothing is asserted.

python tests/benchmarks/bench_diagnose.py
"""

from __future__ import annotations

import gc
import linecache
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

import torch  # noqa: E402
from IPython.core.ultratb import FormattedTB  # noqa: E402

RUNS = 7

STANDARD = [
    "class Net(torch.nn.Module):\n    def __init__(self):\n        super().__init__()\n"
    "        self.body = torch.nn.Sequential(*[torch.nn.Linear(16, 16) for _ in range(8)])\n"
    "    def forward(self, x):\n        return self.body(x)\n",
    "net = Net().to('cuda:0')\nloader = [(torch.ones(4, 16), torch.zeros(4, dtype=torch.int64))] * 3\n"
    "criterion = torch.nn.CrossEntropyLoss()\n",
    "for x, y in loader:\n    loss = criterion(net(x.to('cuda:0')), y)\n",
]
# Many parameters, many names, many cells, many frames.
DEEP = [
    "class Block(torch.nn.Module):\n    def __init__(self, n):\n        super().__init__()\n"
    "        self.fc = torch.nn.Linear(4, 4)\n        self.inner = Block(n - 1) if n else None\n"
    "        self.bias = torch.zeros(4)\n    def forward(self, x):\n        x = self.fc(x)\n"
    "        return self.inner(x) if self.inner is not None else x + self.bias\n",
    "net = torch.nn.Sequential(*[Block(12) for _ in range(20)]).to('cuda:0')\n",
    *[f"v{i} = [torch.ones(4) for _ in range(20)]\nv{i} = {{'a': v{i}}}\n" for i in range(200)],
    "def run(n, x):\n    if n:\n        return run(n - 1, x)\n    return net(x)\n",
    "x = torch.ones(2, 4, device='cuda:0')\nrun(30, x)\n",
]


def median(work: Callable[[], object]) -> float:
    seconds = []
    for _ in range(RUNS):
        start = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - start)
    return statistics.median(seconds)


def once(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def failing(cells: list[str]) -> tuple[BaseException, Any, dict[str, Any]]:
    """Runs cells as IPython names and compiles them: the error, the history, the workspace."""
    from ipydevice.cells import CellHistory

    names: dict[str, Any] = {"torch": torch, "__name__": "__main__"}
    history = CellHistory(name_of=lambda raw, python, number: f"<ipython-input-{number}-bench>")
    for number, text in enumerate(cells, 1):
        file = f"<ipython-input-{number}-bench>"
        linecache.cache[file] = (len(text), None, text.splitlines(True), file)
        history.open(number, text)
        try:
            exec(compile(text, file, "exec"), names)
        except RuntimeError as error:
            history.close(success=False)
            return error, history, names
        history.close(success=True)
    raise AssertionError("no cell has failed")


def diagnose(error: BaseException, history: Any, names: dict[str, Any]) -> Any:
    from ipydevice import postmortem

    begun = postmortem.begin(error, history, names)
    assert begun is not None
    return begun.finish()


def measure(name: str, cells: list[str]) -> None:
    error, history, names = failing(cells)
    formatters = {mode: FormattedTB(mode=mode, theme_name="nocolor") for mode in ("Context", "Verbose")}

    def formatting(mode: str) -> Callable[[], object]:
        return lambda: formatters[mode].structured_traceback(type(error), error, error.__traceback__)

    unit_first = once(formatting("Context"))
    first = once(lambda: diagnose(error, history, names))
    gc.collect()
    unit = median(formatting("Context"))
    verbose = median(formatting("Verbose"))
    again = median(lambda: diagnose(error, history, names))
    told = diagnose(error, history, names)
    print(f"{name}: {told.headline}, {told.cause}")
    for label, seconds, base in (
        ("IPython, Context, first", unit_first, unit_first),
        ("diagnosis, first", first, unit_first),
        ("IPython, Context", unit, unit),
        ("IPython, Verbose", verbose, unit),
        ("diagnosis", again, unit),
    ):
        print(f"  {label:<28} {seconds * 1e3:9.1f} ms {seconds / base:8.2f}")


def main() -> None:
    if len(sys.argv) > 1:  # each case in a process of its own: the first time counts
        torch.set_num_threads(1)
        from ipydevice import virtual_gpus

        with virtual_gpus(1):
            measure(sys.argv[1], {"standard": STANDARD, "deep": DEEP}[sys.argv[1]])
        return
    with tempfile.TemporaryDirectory() as compiled:
        # As installed by pip, which compiles: whatever this shell says of bytecode.
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONPYCACHEPREFIX": compiled}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        subprocess.run([sys.executable, "-m", "compileall", "-q", str(ROOT / "ipydevice")], check=True, env=environment)
        for name in ("standard", "deep"):
            subprocess.run([sys.executable, __file__, name], check=True, env=environment)


if __name__ == "__main__":
    main()
