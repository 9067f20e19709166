"""Applying a fix to a notebook's cells is pure, and refuses a text that has changed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ipydevice import fixes
from ipydevice.diagnosis import Edit, Fix, Rerun
from ipydevice.fixes.context import diff

CELLS: list[dict[str, Any]] = [
    {"cell": 1, "cell_id": "a", "source": "x = 1"},
    {"cell": 4, "cell_id": "b", "source": "y = x"},
    {"cell": None, "cell_id": "c", "source": "never ran"},
    {"cell": 5, "cell_id": "d", "source": "z = y"},
]


def fix(**changes: Any) -> Fix:
    plain: dict[str, Any] = {
        "title": "t",
        "kind": "edit",
        "edits": (Edit("x = 1", "x = 2", 1, "a"),),
        "rerun": (Rerun(1, "a", "x = 2"), Rerun(5, "d", "z = y")),
    }
    return Fix(**{**plain, **changes})


def test_texts_are_replaced_and_the_cells_to_run_told() -> None:
    before = [dict(cell) for cell in CELLS]
    cells, rerun = fixes.apply(CELLS, fix())
    assert [c["source"] for c in cells] == ["x = 2", "y = x", "never ran", "z = y"]
    assert [(r["cell"], r["source"]) for r in rerun] == [(1, "x = 2"), (5, "z = y")]
    assert before == CELLS, "the argument is left alone"


def test_a_dict_does_as_well_as_a_fix() -> None:
    plain = {
        "edits": [{"cell": 1, "cell_id": "a", "before": "x = 1", "after": "x = 2"}],
        "rerun": [{"cell": 5, "cell_id": "d", "source": "z = y"}],
        "setup": None,
    }
    cells, rerun = fixes.apply(CELLS, plain)
    assert cells[0]["source"] == "x = 2"
    assert [r["cell_id"] for r in rerun] == ["d"]


def test_setup_is_a_new_cell_below_the_failed_one_and_runs_first() -> None:
    cells, rerun = fixes.apply(CELLS, fix(kind="repair", edits=(), setup="m.to(d)", rerun=(Rerun(4, "b", "y = x"),)))
    assert [c["source"] for c in cells] == ["x = 1", "y = x", "m.to(d)", "never ran", "z = y"]
    assert [r["source"] for r in rerun] == ["m.to(d)", "y = x"]


def test_without_ids_number_and_text_find_the_cell() -> None:
    bare = [{**cell, "cell_id": None} for cell in CELLS]
    cells, rerun = fixes.apply(bare, fix(edits=(Edit("x = 1", "x = 2", 1),), rerun=(Rerun(1, None, "x = 2"),)))
    assert cells[0]["source"] == "x = 2"
    assert rerun[0]["source"] == "x = 2"


def test_of_equal_cells_the_one_with_the_number_is_meant() -> None:
    twins = [{"cell": 2, "cell_id": None, "source": "x = 1"}, {"cell": 3, "cell_id": None, "source": "x = 1"}]
    cells, _ = fixes.apply(twins, fix(edits=(Edit("x = 1", "x = 2", 3),), rerun=()))
    assert [c["source"] for c in cells] == ["x = 1", "x = 2"]


def test_a_changed_cell_is_not_touched() -> None:
    changed = [{**CELLS[0], "source": "x = 1  # edited since"}, *CELLS[1:]]
    with pytest.raises(ValueError, match=r"fix for In \[1\] not applied: its text has changed since it ran"):
        fixes.apply(changed, fix())


def test_a_missing_cell_is_said() -> None:
    with pytest.raises(ValueError, match=r"fix for In \[1\] not applied: no cell"):
        fixes.apply(CELLS[1:], fix())


@pytest.mark.parametrize("inside", [True, False])
def test_a_patch_names_its_file_as_git_does(inside: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here = tmp_path / "project"
    (here / "pkg").mkdir(parents=True)
    monkeypatch.chdir(here)
    file = (here / "pkg" if inside else tmp_path) / "model.py"
    file.write_text("a\n")
    text = diff(Edit("a\n", "b\n", file=str(file)))
    old, new = text.splitlines()[:2]
    assert (old, new) == (("--- a/pkg/model.py", "+++ b/pkg/model.py") if inside else (f"--- {file}", f"+++ {file}"))
