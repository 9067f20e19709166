"""What ipydevice costs: to load, in a good cell, and after an error. Ratios within one run; nothing is asserted.

python tests/benchmarks/bench_load.py
"""

from __future__ import annotations

import contextlib
import io
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).parents[2]
RUNS = 7  # fresh interpreters for each import
CELLS = 2000
ERRORS = 15

PREPARE = f"""
import sys, time
sys.path.insert(0, {str(ROOT)!r})
import torch, IPython
from IPython.core.interactiveshell import InteractiveShell
shell = InteractiveShell.instance()
start = time.perf_counter()
"""
REPORT = "\nprint('TOOK', time.perf_counter() - start)"

SETUP = """
import torch, ipydevice
import torch.nn.functional as F
gpus = ipydevice.virtual_gpus(1).enable()
model = torch.nn.Sequential(*(torch.nn.Linear(8, 8) for _ in range(6))).to("cuda:0")
inputs = torch.zeros(4, 8)
def step(inputs):
    return F.relu(model(inputs))
"""
FAIL = "output = step(inputs)"


def in_fresh_interpreters(code: str) -> float:
    """Median seconds that code takes where torch and IPython are loaded."""
    seconds = []
    for _ in range(RUNS):
        run = subprocess.run(
            [sys.executable, "-c", PREPARE + code + REPORT], capture_output=True, text=True, check=True
        )
        seconds.append(float(run.stdout.rpartition("TOOK")[2]))
    return statistics.median(seconds)


def loading() -> None:
    ours = in_fresh_interpreters("shell.run_line_magic('load_ext', 'ipydevice')")
    print(f"%load_ext ipydevice, torch and IPython loaded      {ours * 1e3:8.1f} ms     1.00")
    for peer in ("stack_data", "nbformat", "ipywidgets", "anywidget"):
        other = in_fresh_interpreters(f"import {peer}")
        print(f"import {peer:<43} {other * 1e3:8.1f} ms  {other / ours:7.2f}")


def per_call(do: Callable[[], object], times: int) -> float:
    """Median seconds of one call; the first ones, which fill caches, are left out."""
    seconds = []
    for _ in range(times):
        start = time.perf_counter()
        do()
        seconds.append(time.perf_counter() - start)
    return statistics.median(seconds[times // 10 :])


def running() -> None:
    from IPython.core.interactiveshell import InteractiveShell
    from traitlets.config import Config

    config = Config()
    config.HistoryManager.enabled = False
    shell = InteractiveShell.instance(config=config)

    def good() -> None:
        shell.run_cell("x = 1", store_history=True)

    def bad() -> None:
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            shell.run_cell(FAIL, store_history=True)

    shell.run_cell(SETUP)
    good_without, bad_without = per_call(good, CELLS), per_call(bad, ERRORS)
    shell.run_line_magic("load_ext", "ipydevice")
    start = time.perf_counter()
    bad()
    first = time.perf_counter() - start
    bad_with, good_with = per_call(bad, ERRORS), per_call(good, CELLS)
    shell.run_cell("gpus.disable()")

    print(f"a good cell without ipydevice                      {good_without * 1e6:8.1f} us     1.00")
    print(
        f"a good cell with it                                {good_with * 1e6:8.1f} us  {good_with / good_without:7.2f}"
    )
    print(f"   on top                                          {(good_with - good_without) * 1e6:8.1f} us")
    print(f"a failing cell without, traceback in Context mode  {bad_without * 1e3:8.1f} ms     1.00")
    print(f"a failing cell with panel                          {bad_with * 1e3:8.1f} ms  {bad_with / bad_without:7.2f}")
    print(f"   the first one, imports included                 {first * 1e3:8.1f} ms  {first / bad_without:7.2f}")


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))
    loading()
    running()
