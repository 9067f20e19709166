"""The mutations change one decision and nothing else, and what goes astray is recorded, not guessed."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from caserun.forks import in_fork
from caserun.mutation import Marker, Mutant, mutants
from caserun.session import Session

HERE = Path(__file__).parent


@pytest.mark.parametrize(
    ("source", "kind", "after"),
    [
        ("x = load().to(device)", "drop .to", "x = load()"),
        ("x = x.to(DEV, non_blocking=True)", "discard", "x.to(DEV, non_blocking=True)"),
        ("net.to(device)", "freeze", 'net.to("cuda:1")'),
        ("y = out.detach().cpu().numpy()", "drop .cpu", "y = out.detach().numpy()"),
        ("n = torch.zeros(3, device=x.device)", "drop device=", "n = torch.zeros(3)"),
        ("n = torch.zeros(\n    3,\n    device=d,\n)", "drop device=", "n = torch.zeros(\n    3,\n)"),
        (
            "n = torch.full(device=d, size=(2,), fill_value=1.)",
            "drop device=",
            "n = torch.full(size=(2,), fill_value=1.)",
        ),
        ("e = torch.randn_like(mu)  # größer", "unlike", "e = torch.randn(mu.shape)  # größer"),
        ('self.register_buffer("pe", pe[None])', "unbuffer", "self.pe = pe[None]"),
        ("self.ls = nn.ModuleList(f(i) for i in r)", "list", "self.ls = list(f(i) for i in r)"),
        (
            "s = torch.load(f, map_location='cpu', weights_only=True)",
            "drop map_location",
            "s = torch.load(f, weights_only=True)",
        ),
    ],
)
def test_one_decision_is_taken_back(source: str, kind: str, after: str) -> None:
    found = [m for m in mutants({1: source}) if m.kind == kind]
    assert [m.sources[1] for m in found] == [after]


def test_the_place_of_the_stray_is_that_in_the_mutated_text() -> None:
    source = "é = 1; a, b = f(x.to(device)), y.to(device)"
    strays = {m.stray_text for m in mutants({1: source}) if m.kind == "drop .to"}
    assert strays == {"x", "y"}


@pytest.mark.parametrize("source", ["x.to(torch.float16)", "torch.zeros(3)", "print(device)", "%%time\nx.to(device)"])
def test_what_is_no_device_decision_is_left_alone(source: str) -> None:
    assert list(mutants({1: source})) == []


def test_every_mutant_of_the_programs_can_be_parsed() -> None:
    programs = sorted((HERE / "programs").glob("*.py"))
    found = [m for path in programs for m in mutants(dict(enumerate(path.read_text("utf-8").split("# %%\n"), 1)))]
    assert len(found) > 80
    for mutant in found:
        ast.parse(mutant.sources[mutant.cell])
        assert mutant.stray_text


def recorded(mutant: Mutant) -> tuple[str, list[str]]:
    session = Session(virtual=True, extension=False)
    marker = Marker(mutant, session.shell)
    _, run = session.run_all(mutant.sources)
    assert run is not None
    return run.error_text, [str(value.device) for value in marker.recorded]


def test_the_stray_value_is_recorded_while_the_cell_runs() -> None:
    sources = {
        1: "import torch\nw = torch.ones(2, device=DEV)\ndef f(x):\n    x = x.to(w.device)\n    return x * w",
        2: "y = f(torch.ones(2))",
    }
    mutant = next(m for m in mutants(sources) if m.kind == "drop .to")
    error, devices = in_fork(recorded, mutant)
    assert "cuda:0 and cpu" in error
    assert devices == ["cpu"]


def test_a_few_mutants_are_judged(tmp_path: Path) -> None:
    """A sample; the whole table is made by `make bench`."""
    out = tmp_path / "mutants.json"
    command = [
        sys.executable,
        HERE / "benchmarks" / "mutants.py",
        "--programs-only",
        "-k",
        "vae",
        "--every",
        "5",
        "--no-fixes",
    ]
    run = subprocess.run(
        [*map(str, command), "--wrong", "--json", str(out)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": str(HERE.parent)},
    )
    assert run.returncode == 0, run.stderr
    judged = json.loads(out.read_text())
    raised = [j for j in judged if j["state"] == "raises"]
    assert raised, run.stdout
    assert not [j for j in raised if "no diagnosis" in j["culprit"] or "benchmark:" in j["culprit"]], run.stdout
