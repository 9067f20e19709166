"""Complete training programs: the losses of every step are those of a plain CPU run."""

from __future__ import annotations

import contextlib
import io
import random
from pathlib import Path
from typing import Any

import pytest
import torch

from ipydevice.virtual import virtual_gpus

PROGRAMS = sorted((Path(__file__).parents[1] / "programs").glob("*.py"))


def run(path: Path, **devices: str) -> dict[str, Any]:
    """Cell by cell in one namespace, each after the same seed."""
    namespace: dict[str, Any] = {"__name__": "__main__", **devices}
    random.seed(0)
    with contextlib.redirect_stdout(io.StringIO()):
        for position, cell in enumerate(path.read_text("utf-8").split("# %%\n")):
            torch.manual_seed(0)
            exec(compile(cell, f"{path.name}[{position}]", "exec"), namespace)
    return namespace


@pytest.mark.parametrize("path", PROGRAMS, ids=[path.stem for path in PROGRAMS])
def test_losses_are_those_of_a_plain_cpu(path: Path) -> None:
    plain = run(path, DEV="cpu", DEV2="cpu", HOST="cpu")["losses"]
    with virtual_gpus(2):
        found = run(path, DEV="cuda:0", DEV2="cuda:1", HOST="cpu")
        swapped = run(path, DEV="cuda:1", DEV2="cuda:0", HOST="cpu")
        places = {str(value.device) for value in found.values() if isinstance(value, torch.Tensor)}
    assert len(plain) > 10
    assert all(isinstance(value, float) for value in plain)
    assert found["losses"] == plain
    assert swapped["losses"] == found["losses"]
    assert "cuda:0" in places or path.stem == "replay_buffer"


def test_there_are_enough_of_them() -> None:
    assert len(PROGRAMS) >= 6
