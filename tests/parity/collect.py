"""What one kind of machine answers: situations, operations, programs and notebooks, written down as JSON.

python tests/parity/collect.py real    > real.json      # needs CUDA
python tests/parity/collect.py virtual > virtual.json   # needs none
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import random
import sys
import tempfile
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

TESTS = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(TESTS.parent), str(TESTS)]

import torch  # noqa: E402
from virtual.operations import OPERATIONS  # noqa: E402
from virtual.situations import SITUATIONS  # noqa: E402

DEV, DEV2 = "cuda:0", "cuda:1"
NO_SECOND_CARD = "not run: needs a second card"


def _attempt(call: Callable[[], Any]) -> Any:
    """The answer, or the error in words; a missing second card is no answer."""
    try:
        return call()
    except Exception as error:  # noqa: BLE001  (what is raised is the answer)
        first = str(error).splitlines()[0] if str(error) else ""
        if torch.cuda.device_count() < 2 and ("invalid device ordinal" in first or "Invalid device id" in first):
            return NO_SECOND_CARD
        return f"{type(error).__name__}: {first}"


def situation(name: str) -> Any:
    def call() -> str:
        return f"no error (result on {SITUATIONS[name](DEV, DEV2).device})"

    found = _attempt(call)
    if found == NO_SECOND_CARD and "ordinal" in name:
        return "AcceleratorError: CUDA error: invalid device ordinal"
    return found


def operation(name: str) -> Any:
    def call() -> list[Any]:
        torch.manual_seed(0)
        return [
            [
                str(tensor.device),
                str(tensor.dtype),
                list(tensor.shape),
                tensor.detach().double().cpu().flatten().tolist(),
            ]
            for tensor in OPERATIONS[name](DEV, DEV2)
        ]

    return _attempt(call)


def program(path: Path) -> Any:
    def call() -> list[float]:
        random.seed(0)
        namespace: dict[str, Any] = {"__name__": "__main__", "DEV": DEV, "DEV2": DEV2, "HOST": "cpu"}
        for position, cell in enumerate(path.read_text("utf-8").split("# %%\n")):
            torch.manual_seed(0)
            exec(compile(cell, f"{path.name}[{position}]", "exec"), namespace)
        return list(namespace["losses"])

    return _attempt(call)


def notebook(path: Path) -> Any:
    """The cell that fails, and its words."""
    head, *cells = path.read_text("utf-8").split("# %%\n")
    tomllib.loads("\n".join(line[2:] for line in head.splitlines() if line.startswith("# ")))
    namespace: dict[str, Any] = {"__name__": "__main__", "DEV": DEV, "DEV2": DEV2, "HOST": "cpu"}
    for position, cell in enumerate(cells, 1):
        try:
            code = compile(cell, f"{path.name}[{position}]", "exec")
        except SyntaxError:
            return "not run: needs IPython"
        torch.manual_seed(0)
        found = _attempt(lambda code=code: exec(code, namespace))  # type: ignore[misc]
        if found is not None:
            return found if found == NO_SECOND_CARD else f"cell {position}: {found}"
    return "no error"


def everything() -> dict[str, dict[str, Any]]:
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        found = {
            "situation": {name: situation(name) for name in SITUATIONS},
            "operation": {name: operation(name) for name in OPERATIONS},
            "program": {path.stem: program(path) for path in sorted((TESTS / "programs").glob("*.py"))},
        }
        found["notebook"] = {}
        for path in sorted((TESTS / "cases").glob("*.py")):
            found["notebook"][path.stem] = notebook(path)
            torch.set_default_device(None)
    return found


def main(kind: str) -> None:
    os.chdir(tempfile.mkdtemp())
    if kind == "virtual":
        from ipydevice.virtual import virtual_gpus

        with virtual_gpus(2):
            found = everything()
    else:
        found = everything()
    json.dump(found, sys.stdout)


if __name__ == "__main__":
    main(sys.argv[1])
