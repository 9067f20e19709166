"""The judge itself: it must accept what is right and refuse what is not."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from caserun import case, culprit, objects
from torch import nn

HEADER = """\
# id = "900"
# cause = "input_not_moved"
# culprit = "x"
# also_culprit = ["batch['x']"]
# culprit_cell = 2
# origin_cell = 1
# culprit_device = "HOST"
# fail_cell = 2
# expect_after_fix = "y.device == torch.device(DEV)"
# # a comment
"""
CELLS = "# %%\nx = torch.ones(3)\n# %%\ny = model(x)\n"


@pytest.fixture
def notebook(tmp_path: Path) -> case.Case:
    path = tmp_path / "900_a.py"
    path.write_text(HEADER + "\n" + CELLS)
    return case.read(path)


def said(expression: str, *, cell: int | None = 2, device: str = "cpu") -> dict[str, object]:
    return {"expression": expression, "device": device, "cell": cell}


def test_cells_are_numbered_from_one(notebook: case.Case) -> None:
    assert notebook.sources() == {1: "x = torch.ones(3)", 2: "y = model(x)"}


@pytest.mark.parametrize("broken", [HEADER.replace("fail_cell", "fails"), HEADER.replace('"900"', "900 901")])
def test_a_header_that_lacks_something_is_refused(tmp_path: Path, broken: str) -> None:
    path = tmp_path / "901_b.py"
    path.write_text(broken + CELLS)
    with pytest.raises(ValueError, match="header"):
        case.read(path)


@pytest.mark.parametrize(
    "expression", ["x", "x[1:]", "batch['x']", "batch", "holder", "batch [ 'x' ]", "torch.ones(3)"]
)
def test_the_stray_its_views_and_its_holder_are_right(notebook: case.Case, expression: str) -> None:
    x = torch.ones(3)
    holder = type("Holder", (), {})()
    holder.x = x
    space = {"x": x, "batch": {"x": x}, "holder": holder, "torch": torch, "HOST": "cpu"}
    cell = 1 if expression.startswith("torch") else 2
    assert culprit.judge(notebook, said(expression, cell=cell), [], space) == ""


@pytest.mark.parametrize(
    ("answer", "wrong"),
    [
        (said("other"), "names other"),
        (said("x.clone()"), "names"),
        (said("far"), "names far"),
        (said("nowhere"), "names nowhere"),
        (said("x", cell=3), "cell 3"),
        (said("x", device="cuda:0"), "device cuda:0"),
        (None, "no culprit"),
    ],
)
def test_anything_else_is_wrong(notebook: case.Case, answer: dict[str, object] | None, wrong: str) -> None:
    x = torch.ones(3)
    space = {"x": x, "batch": {"x": x}, "other": torch.ones(3), "far": {"a": {"b": x}}, "HOST": "cpu"}
    assert wrong in culprit.judge(notebook, answer, [], space)


def test_members_of_modules_closures_and_optimizers() -> None:
    layer = nn.Linear(2, 2)
    optimizer = torch.optim.Adam(layer.parameters())
    layer(torch.ones(1, 2)).sum().backward()
    optimizer.step()
    kept = torch.ones(1)
    assert any(objects.same(layer.weight, m) for m in objects.walk([layer]))
    assert any(objects.same(kept, m) for m in objects.walk(lambda: kept))
    moment = optimizer.state[layer.weight]["exp_avg"]
    assert any(objects.same(moment, m) for m in objects.walk(optimizer))
    assert not objects.same(kept, torch.ones(1))


def test_floats_are_those_of_the_names_in_the_expectation() -> None:
    layer = nn.Linear(1, 1)
    space = {"layer": layer, "xs": [torch.zeros(2), torch.tensor(1)], "n": 3, "unseen": torch.ones(1)}
    found = objects.floats("layer is not None and len(xs) == n", space)
    assert sorted(found) == ["layer.bias", "layer.weight", "xs[0]"]


@pytest.mark.parametrize(
    ("other", "word"),
    [({"a": np.ones(2)}, ""), ({"a": np.ones(2) * 1.1}, "differs"), ({"a": np.ones(3)}, "shape"), ({}, "other floats")],
)
def test_differences_are_told(other: dict[str, np.ndarray], word: str) -> None:
    told = objects.difference({"a": np.ones(2)}, other)
    assert word in told
    assert bool(told) == bool(word)
