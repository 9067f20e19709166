"""Which cells run again: those that matter, in order, the failed one last."""

from __future__ import annotations

import ast
from typing import Any

import pytest

from ipydevice.cells import CellHistory
from ipydevice.diagnose.finding import Finding, Site
from ipydevice.diagnose.source import Source
from ipydevice.fixes.rerun import Plan, Rerunner
from ipydevice.fixes.workspace import Workspace
from ipydevice.messages.mismatch import Mismatch


def planned(cells: list[str], edits: dict[int, str], namespace: dict[str, Any] | None = None, **seconds: float) -> Plan:
    """The plan for a notebook whose last cell failed; `edits` by number, durations as ``c3=50.0``."""
    history = CellHistory()
    for number, raw in enumerate(cells, 1):
        cell = history.open(number, raw)
        if number < len(cells):
            history.close(success=True)
            cell.duration = seconds.get(f"c{number}", 0.01)
    failed = history.cells[-1]
    source = Source(failed.raw, cell=failed)
    finding = Finding(_MISMATCH, Site(source, source.tree.body[-1]), history, namespace or {})
    by_cell = {history.cells[number - 1]: text for number, text in edits.items()}
    return Rerunner(Workspace(finding)).plan(by_cell, {cell: ast.parse(text) for cell, text in by_cell.items()})


def numbers(plan: Plan) -> list[int | None]:
    return [run.cell for run in plan.rerun]


_MISMATCH = Mismatch(
    id="PT001", family="common_check", text="", devices=("cuda:0", "cpu"), op=None, argument=None, argument_device=None,
    reference_device=None, arguments=(), roles={}, host_required=None, kind="placement", exception_type="RuntimeError",
    library=None, versions="", unknown=(), confidence="exact", wrapped_in=None, frames=(),
)  # fmt: skip


@pytest.mark.parametrize(
    ("cells", "edits", "expected"),
    [
        pytest.param(
            ["def f(x): return x", "f(1)", "y = f(2)"],
            {1: "def f(x): return +x"},
            [1, 3],
            id="a call of no use",
        ),
        pytest.param(
            ["torch.set_default_device(a)", "def f(): return g()", "x = f()", "torch.set_default_device(b)", "x + f()"],
            {2: "def f(): return h()"},
            [1, 2, 3, 4, 5],
            id="under the default device of that time",
        ),
        pytest.param(
            ["torch.set_default_device(a)", "torch.set_default_device(b)", "def f(): return g()", "x = f()", "x + 1"],
            {3: "def f(): return h()"},
            [3, 4, 5],
            id="under the default device that still holds",
        ),
        pytest.param(
            ["torch.set_default_device(a)", "def f(): return g()", "torch.set_default_device(b)", "x = f()", "x + 1"],
            {2: "def f(): return h()"},
            [2, 4, 5],
            id="defined under another default device",
        ),
        pytest.param(["x = g()", "def f(): return x", "f()"], {1: "x = h()"}, [1, 3], id="names are looked up late"),
        pytest.param(["class A: n = 1", "a = A()", "b = 2", "a.n"], {1: "class A: n = 2"}, [1, 2, 4], id="instances"),
        pytest.param(
            ["class A: pass", "class B(A): pass", "b = B()", "b"],
            {1: "class A: x = 1"},
            [1, 2, 3, 4],
            id="bases",
        ),
        pytest.param(["import torch", "x = g()", "y = torch.f(x)"], {1: "import torch  # again"}, [1, 3], id="imports"),
        pytest.param(["n = 3\nx = g()", "z = n + 1", "z + x"], {1: "n = 3\nx = h()"}, [1, 3], id="constants stay"),
        pytest.param(["x = g()", "y = x", "del q", "y"], {1: "x = h()"}, [1, 2, 4], id="through another name"),
        pytest.param(["x = g()", "print(x)", "x"], {1: "x = h()"}, [1, 3], id="printing does not matter"),
        pytest.param(["m = M()", "m.to(d)", "m(x)"], {1: "m = N()"}, [1, 2, 3], id="a method may change it"),
        pytest.param(["m = M()", "train(m)", "m(x)"], {1: "m = N()"}, [1, 2, 3], id="a function may change it"),
        pytest.param(["m = M()", "torch.save(m, p)", "m(x)"], {1: "m = N()"}, [1, 3], id="torch's functions do not"),
        pytest.param(["x = g()", "y = f(x)"], {2: "y = f(x.to(d))"}, [2], id="the failed cell alone"),
        pytest.param(
            ["l = L()", "k = eye()", "l.register_hook(k)", "l()"],
            {3: "l.register_hook(k2)"},
            [1, 3, 4],
            id="hooks",
        ),
        pytest.param(["xs = []", "xs.append(f())", "cat(xs)"], {2: "xs.append(g())"}, [1, 2, 3], id="append"),
        pytest.param(["xs = []\nxs.append(f())", "cat(xs)"], {1: "xs = []\nxs.append(g())"}, [1, 2], id="own append"),
        pytest.param(["g = f", "p = lambda: g()", "p()"], {1: "g = h"}, [1, 3], id="lambdas are functions"),
        pytest.param(
            ["def a(): return 1", "def b(): return a()", "y = b()", "y"],
            {1: "def a(): return 2"},
            [1, 3, 4],
            id="calls of calls",
        ),
    ],
)  # fmt: skip
def test_cells_that_matter(cells: list[str], edits: dict[int, str], expected: list[int]) -> None:
    assert numbers(planned(cells, edits)) == expected


def test_the_new_text_is_what_runs() -> None:
    plan = planned(["x = 1", "y = x + g()"], {1: "x = g()"})
    assert [run.source for run in plan.rerun] == ["x = g()", "y = x + g()"]


def test_a_cell_that_ran_twice_runs_once() -> None:
    history = CellHistory()
    for number, raw in enumerate(["x = g()", "y = x", "x = g()", "y"], 1):
        history.open(number, raw)
        if number < 4:
            history.close(success=True)
    source = Source("y", cell=history.cells[-1])
    finding = Finding(_MISMATCH, Site(source, source.tree.body[0]), history, {})
    plan = Rerunner(Workspace(finding)).plan({history.cells[2]: "x = h()"}, {history.cells[2]: ast.parse("x = h()")})
    assert numbers(plan) == [3, 4], "In [2] ran before In [3] did: it is not run after it"


def test_long_cells_are_told_and_lose_work() -> None:
    plan = planned(["m = M()", "fit(m)", "m(x)"], {1: "m = N()"}, c2=2460.0)
    assert plan.loses_work
    assert any("41 min" in note for note in plan.notes)


def test_short_training_is_no_loss() -> None:
    assert not planned(["m = M()", "opt.step(m)", "m(x)"], {1: "m = N()"}, c2=0.2).loses_work


def test_what_happens_twice_is_told() -> None:
    plan = planned(["p = q()", "r.append(p)", "savefig(p)\nz = p", "z + r"], {1: "p = s()"})
    assert any("appends once more" in note for note in plan.notes)
    assert any("writes a file again" in note for note in plan.notes)


def test_what_is_emptied_is_filled_again() -> None:
    live = {"acts": [1, 2]}
    cells = ["acts = []\nm = M()\nm.hook(acts)", "m(1)", "print(m)", "z = cat(acts)"]
    assert numbers(planned(cells, {1: cells[0] + "  # new"}, live)) == [1, 2, 4]


def test_what_is_made_of_a_model_follows_it() -> None:
    cells = ["m = M()\nrec = Recorder(m)", "m(1)", "z = rec.all()"]
    assert numbers(planned(cells, {1: cells[0] + "  # new"})) == [1, 2, 3]


def test_a_name_that_is_bound_again_later_is_bound_again() -> None:
    """Run again without the last binder, an edited cell would bring back the value before it."""
    cells = [
        "y = make()",
        "def scaled(x):\n    return x * w\nw = make()",
        "before = scaled(y)",
        "w = make() + 1",
        "out = scaled(y)",
    ]
    plan = planned(cells, {2: "def scaled(x):\n    return x * w.to(x.device)\nw = make()"})
    assert [run.cell for run in plan.rerun][-2:] == [4, 5]
