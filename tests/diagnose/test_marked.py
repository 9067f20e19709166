"""Operands are marked on the lines on which they stand, in calls that go over several."""

from __future__ import annotations

import pytest
import shells

import ipydevice
from ipydevice.virtual import virtual_gpus

SETUP = """import torch, torch.nn as nn, torch.nn.functional as F
x, y = torch.ones(3, 4, device="cuda:0"), torch.ones(3, 4)
net = nn.Linear(4, 3)"""

# What stands under marks: on the failing line, and by line below it.
SEVERAL = {
    "members of a list": ("z = torch.cat([\n    x,\n    y,\n])", [], {2: ["x"], 3: ["y"]}),
    "two on one line": ("z = torch.addcmul(\n    x, y,\n    y)", [], {2: ["x", "y"], 3: ["y"]}),
    "one on the failing line": ("z = torch.add(x,\n              y)", ["x"], {2: ["y"]}),
    "operators": ("z = (\n    x\n    * y\n)", ["x"], {3: ["y"]}),
    "keywords": ("F.cross_entropy(\n    x,\n    target=y,\n)", [], {2: ["x"], 3: ["y"]}),
    "a chain": ("h = net(\n    x\n    .float()\n)", ["net"], {2: ["x"]}),
    "wide characters": ("z = torch.add(\n    x, other=y,  # größer 漢\n)", [], {2: ["x", "y"]}),
    "a line of a magic above": ("%matplotlib_ = 1\nz = torch.add(\n    x,\n    y)", [], {3: ["x"], 4: ["y"]}),
    "below a cell magic": ("%%time\nz = torch.add(\n    x,\n    y)", [], {3: ["x"], 4: ["y"]}),
    "in a function": ("def f(a, b):\n    return torch.add(\n        a,\n        b)\nf(x, y)", [], {3: ["a"], 4: ["b"]}),
    "one line": ("z = x + y", ["x", "y"], {}),
}


@pytest.mark.parametrize("case", SEVERAL.values(), ids=SEVERAL)
def test_lines_that_hold_operands(case: tuple[str, list[str], dict[int, list[str]]]) -> None:
    cell, first, further = case
    cell = cell.replace("%matplotlib_ = 1", "!true")
    with virtual_gpus(1), shells.shell() as shell:
        for text in ("%load_ext ipydevice", SETUP):
            assert shell.run(text).error is None
        shown = shell.run(cell).text
        found = ipydevice.explain()
    assert found is not None
    assert [found.failed.source[mark.start : mark.end].split("\n")[0] for mark in found.marks] == first
    lines = cell.split("\n")
    for one in found.further:
        assert one.source == lines[one.line - 1].strip()
        assert f"line {one.line}  " in shown
    assert {one.line: [one.source[m.start : m.end] for m in one.marks] for one in found.further} == further
    assert all((mark.device == "cpu") == mark.stray for one in found.further for mark in one.marks)
    assert len(shown[shown.index("✗") :].strip().splitlines()) <= 12


def test_of_many_lines_the_stray_one_is_shown() -> None:
    rows = "".join(f"    x{at},\n" for at in range(30))
    with virtual_gpus(1), shells.shell() as shell:
        shell.run("%load_ext ipydevice")
        shell.run(SETUP + "\n" + "\n".join(f"x{at} = x" for at in range(30)) + "\nx17 = y")
        shown = shell.run(f"z = torch.cat([\n{rows}])").text
    panel = shown[shown.index("✗") :].strip().splitlines()
    assert len(panel) <= 12
    (line,) = [line for line in panel if "line 19 " in line]
    assert line.split()[2:4] == ["x17,", "cpu"]
