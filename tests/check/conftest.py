"""A shell with two virtual cards, in which cells are checked."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
import shells
import torch

from ipydevice.report import CheckReport
from ipydevice.virtual import virtual_gpus

IMPORTS = "import torch, torch.nn as nn, torch.nn.functional as F\nimport numpy as np\n"


@dataclass
class Checked:
    """What a checked cell gave."""

    run: shells.Run
    report: CheckReport

    @property
    def mistakes(self) -> list[tuple[int | None, str]]:
        """Line and culprit of each finding."""
        found = []
        for finding in self.report.findings:
            assert finding.diagnosis.culprit is not None
            found.append((finding.diagnosis.failed.line, finding.diagnosis.culprit.expression))
        return found


class Notebook:
    """Cells with ``device`` set to a card."""

    def __init__(self, shell: shells.Shell, device: str = "cuda:0") -> None:
        self.shell = shell
        self.run(f"{IMPORTS}device = {device!r}; torch.manual_seed(0);")

    def run(self, source: str) -> shells.Run:
        run = self.shell.run(source)
        assert run.error is None, run.text
        return run

    def check(self, source: str, options: str = "") -> Checked:
        """Runs a cell under ``%%devicecheck``; an error of the cell's is in the result."""
        self.names.pop("report", None)
        run = self.shell.run(f"%%devicecheck -o report {options}\n{source}")
        assert "report" in self.names, run.text
        return Checked(run, self.names["report"])

    @property
    def names(self) -> dict[str, Any]:
        return self.shell.names


@pytest.fixture
def notebook() -> Iterator[Notebook]:
    with virtual_gpus(2), shells.shell() as shell:
        shell.run("%load_ext ipydevice")
        yield Notebook(shell)


@contextlib.contextmanager
def host_notebook() -> Iterator[Notebook]:
    """The same cells with everything on the host, unchecked."""
    with shells.shell() as shell:
        yield Notebook(shell, "cpu")


def numbers(names: dict[str, Any]) -> dict[str, Any]:
    """The tensors of a namespace as lists, by name."""
    return {
        name: value.detach().cpu().tolist()
        for name, value in names.items()
        if isinstance(value, torch.Tensor) and not name.startswith("_")
    }


def same_on_the_host(notebook: Notebook, *cells: str) -> None:
    """The names of the notebook have the values that the cells give on the host alone."""
    found = numbers(notebook.names)
    with host_notebook() as host:
        for cell in cells:
            host.run(cell)
        expected = numbers(host.names)
    assert set(found) == set(expected)
    for name, value in expected.items():
        torch.testing.assert_close(torch.tensor(found[name]), torch.tensor(value), rtol=1e-5, atol=1e-6, msg=name)
