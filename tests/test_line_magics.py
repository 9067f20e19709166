"""Errors of code that a line magic runs are told as if it stood in the cell itself."""

from __future__ import annotations

import ast

import pytest
import shells

import ipydevice
from ipydevice import fixes
from ipydevice.cells import Cell, CellHistory
from ipydevice.diagnosis import Diagnosis
from ipydevice.virtual import virtual_gpus

SETUP = """import torch
device = "cuda:0"
x = torch.ones(3, device=device)
y = torch.ones(3)
net = torch.nn.Linear(3, 3)
def product(a, b):
    return a @ b"""

FAILING = {
    "%timeit x + y": ("y", "x + y", ("x", "y")),
    "%timeit -n1 -r 2 x + y": ("y", "x + y", ("x", "y")),
    "%time x + y": ("y", "x + y", ("x", "y")),
    "%time z = x + y": ("y", "z = x + y", ("x", "y")),
    "%time x.sum(); x + y": ("y", "x + y", ("x", "y")),
    "%prun -q x + y": ("y", "x + y", ("x", "y")),
    "%timeit -n1 -r1 net(x)": ("net", "net(x)", ("net", "x")),
    "if True:\n    %time ü = net(x)": ("net", "ü = net(x)", ("net", "x")),
    "z = %timeit -n1 -r1 -o x + y": ("y", "x + y", ("x", "y")),
    "for q in range(2):\n    %time x + y\n    %time y + y": ("y", "x + y", ("x", "y")),
}


def failed(shell: shells.Shell, cell: str) -> Diagnosis:
    for text in ("%load_ext ipydevice", SETUP):
        assert shell.run(text).error is None
    shell.run(cell)
    found = ipydevice.explain()
    assert found is not None
    return found


@pytest.mark.parametrize(("cell", "told"), FAILING.items())
def test_the_users_own_names(cell: str, told: tuple[str, str, tuple[str, str]]) -> None:
    culprit, _, marked = told
    with virtual_gpus(1), shells.shell() as shell:
        found = failed(shell, cell)
    assert found.culprit is not None
    assert found.culprit.expression == culprit
    assert found.confidence == "certain"
    assert found.failed.source == next(line.strip() for line in cell.splitlines() if "%" in line)
    marks = [found.failed.source[mark.start : mark.end] for mark in found.marks]
    assert marks == list(marked)
    assert found.origin is not None
    assert found.origin.cell == 2
    assert not any("get_ipython" in row.name for row in found.placements)


@pytest.mark.parametrize("number", range(2))
@pytest.mark.parametrize("cell", FAILING)
def test_the_fixes_mend_it(cell: str, number: int) -> None:
    with virtual_gpus(1), shells.shell() as shell:
        found = failed(shell, cell)
        if number >= len(found.fixes):
            pytest.skip("has one fix")
        cells = [{"cell": 2, "cell_id": None, "source": SETUP}, {"cell": 3, "cell_id": None, "source": cell}]
        fix = found.fixes[number]
        if not fix.rerun:
            pytest.skip("a guard for another time")
        if fix.setup:
            assert shell.run(fix.setup).error is None
        for again in fixes.apply(cells, fix)[1]:
            run = shell.run(again["source"])
            assert run.error is None, run.text


def test_what_time_binds_is_traced() -> None:
    with virtual_gpus(1), shells.shell() as shell:
        failed(shell, "%time x + y")
        shell.run("%time late = torch.zeros(3)")
        shell.run("x * late")
        found = ipydevice.explain()
    assert found is not None
    assert found.origin is not None
    assert found.origin.source == "%time late = torch.zeros(3)"
    assert found.fixes[0].edits[0].after == "%time late = torch.zeros(3, device=device)"


def test_inside_a_function_that_the_magic_calls() -> None:
    with virtual_gpus(1), shells.shell() as shell:
        found = failed(shell, "%timeit -n1 -r1 product(x, y)")
    assert found.culprit is not None
    assert (found.culprit.expression, found.failed.cell) == ("y", 2)


@pytest.mark.parametrize(
    ("raw", "python"),
    [
        ("%time f(x)", "f(x)"),
        ("  %timeit -n 10 -r3 -q f(x)", "f(x)"),
        ("if a:\n    %time b = f(x)\nelse:\n    c", "if a:\n    b = f(x)\nelse:\n    c"),
        ("b = %timeit -o f(x)", "b = f(x)"),
        ("%prun -s cumulative -l 5 f(x)", "f(x)"),
        ("%time", None),  # nothing to run
        ("%time f(", None),  # no Python
        ("b = %time c = 1", None),
        ("%pip install x", None),
        ("%time !ls", None),
    ],
)
def test_a_cells_python(raw: str, python: str | None) -> None:
    with shells.shell() as shell:
        history = CellHistory(transform=shell.ip.transform_cell)
        text = history.python(Cell(1, raw))[0]
        compiled = shell.ip.transform_cell(raw)
    assert text == (compiled if python is None else python + "\n")
    ast.parse(text)
