"""At the end of every cell of a correct program nothing is odd."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import torch

from ipydevice.listing import select
from ipydevice.virtual import virtual_gpus

PROGRAMS = sorted((Path(__file__).parents[1] / "programs").glob("*.py"))


def cells_of(program: Path) -> list[str]:
    return re.split(r"^# %%.*$", program.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]


def odd_by_cell(cells: list[str], device: str) -> list[dict[str, str]]:
    """What the table calls odd after each cell."""
    torch.manual_seed(0)
    space: dict[str, Any] = {"DEV": device, "DEV2": "cuda:1", "__name__": "__main__"}
    said = []
    for number, cell in enumerate(cells, 1):
        exec(compile(cell, f"<cell {number}>", "exec"), space)
        said.append({row.name: row.odd for row in select(space, cells=cells[:number]).rows if row.odd})
    return said


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.stem)
def test_correct_program(program: Path) -> None:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with virtual_gpus(2):
            assert [odd for odd in odd_by_cell(cells_of(program), "cuda:0") if odd] == []
    finally:
        torch.set_num_threads(threads)


def test_a_wrong_one_is_seen() -> None:
    """The test above could fail: a cell that leaves a layer behind is told."""
    cells = [
        "import torch\nmodel = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Linear(2, 2)).to(DEV)",
        "model[1].to('cpu')",
    ]
    with virtual_gpus(1):
        assert [list(odd) for odd in odd_by_cell(cells, "cuda:0")] == [[], ["model"]]
