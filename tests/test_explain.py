"""`ipydevice.explain` and `ipydevice.inventory` with and without IPython."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import torch

import ipydevice

ROOT = Path(__file__).parents[1]

SCRIPT = """
import torch, ipydevice
ipydevice.virtual_gpus(1).enable()

def step(x, y):
    return x * y

x = torch.zeros(3, device="cuda:0")
y = torch.zeros(3)
try:
    step(x, y)
except RuntimeError as error:
    d = ipydevice.explain(error)
print(d.headline)
print(d.failed)
print([row.name for row in ipydevice.inventory().rows])
"""


def test_in_a_script(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(SCRIPT)
    run = subprocess.run(
        [sys.executable, str(script)], capture_output=True, text=True, env={"PYTHONPATH": str(ROOT)}, check=False
    )
    assert run.stdout.splitlines() == ["y is on cpu, x is on cuda:0", f"{script}, line 6", "['x', 'y']"], run.stderr


def test_no_device_error() -> None:
    assert ipydevice.explain(ValueError("cpu and cuda")) is None


@pytest.mark.parametrize("given", ["RuntimeError", 3, RuntimeError, [RuntimeError()]])
def test_what_is_no_exception(given: object) -> None:
    with pytest.raises(TypeError, match=r"explain\(\) takes an exception, such as sys.last_value, but got"):
        ipydevice.explain(given)  # type: ignore[arg-type]


@pytest.mark.parametrize("given", ["x", 3, torch.zeros(2), [("x", torch.zeros(2))]])
def test_what_is_no_namespace(given: object) -> None:
    with pytest.raises(TypeError, match=r"inventory\(\) takes a mapping of names, such as globals\(\), but got"):
        ipydevice.inventory(given)  # type: ignore[arg-type]


def test_an_inventory_of_what_is_given() -> None:
    (row,) = ipydevice.inventory({"x": torch.zeros(3), "n": 1}).rows
    assert (row.name, row.device, row.shape) == ("x", "cpu", (3,))
