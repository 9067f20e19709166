"""Small failing notebooks for the tests of fixes: run on virtual GPUs, mended, run again."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import Any

import shells
import torch

import ipydevice
from ipydevice import fixes
from ipydevice.diagnosis import Diagnosis, Fix

IMPORTS = "import torch\nfrom torch import nn\nimport torch.nn.functional as F\n"


@dataclass
class Notebook:
    """Cells of which the last one fails; what the first fix adds; the name whose numbers count."""

    name: str
    cells: tuple[str, ...]
    adds: str
    result: str = "out"


def run(shell: shells.Shell, cells: list[str], device: str) -> str:
    """Runs cells up to the first that fails; its text."""
    shell.names.setdefault("DEV", device)
    for cell in cells:
        torch.manual_seed(0)
        done = shell.run(cell)
        if done.error is not None:
            return f"{cell}\n{type(done.error).__name__}: {done.error}"
    return ""


def diagnosed(cells: list[str]) -> tuple[Diagnosis, str, Any]:
    """The diagnosis, what went wrong after the first fix, and the result's value."""
    with ipydevice.virtual_gpus(2), shells.shell() as shell, contextlib.ExitStack() as after:
        after.callback(torch.set_default_device, None)  # a notebook may have set one
        shell.run("%load_ext ipydevice")
        shell.names["DEV2"] = "cuda:1"
        assert run(shell, cells, "cuda:0"), "the notebook does not fail"
        found = ipydevice.explain()
        assert found is not None
        problem = "no fix"
        if found.fixes:
            problem = applied(shell, cells, found.fixes[0])
        return found, problem, None


def applied(shell: shells.Shell, cells: list[str], fix: Fix) -> str:
    _, rerun = fixes.apply(notebook(shell, cells), fix)
    return run(shell, [cell["source"] for cell in rerun], "cuda:0")


def notebook(shell: shells.Shell, cells: list[str]) -> list[dict[str, Any]]:
    """The cells with the numbers under which they ran: the extension's loading was In [1]."""
    return [{"cell": number, "cell_id": None, "source": source} for number, source in enumerate(cells, 2)]


def corrected(cells: list[str], fix: Fix) -> list[str]:
    after, _ = fixes.apply(notebook(None, cells), fix)  # type: ignore[arg-type]
    return [cell["source"] for cell in after]


def values(cells: list[str], device: str, name: str) -> torch.Tensor:
    with shells.shell() as shell:
        shell.names["DEV2"] = "cpu" if device == "cpu" else "cuda:1"
        problem = run(shell, cells, device)
        assert not problem, problem
        return torch.as_tensor(shell.names[name]).detach().clone()


def check_first_fix(case: Notebook) -> Diagnosis:
    """The first fix lets the failed cell run, adds what it should, and from the top the numbers are the host's."""
    cells = list(case.cells)
    found, problem, _ = diagnosed(cells)
    fix = found.fixes[0]
    told = f"{found.headline}\ncause {found.cause}\nfix {fix.title} ({fix.kind})\n" + "\n".join(
        e.after for e in fix.edits
    )
    assert not problem, f"{told}\n{problem}"
    lines = [line for edit in fix.edits for line in edit.after.splitlines()]
    assert case.adds in (*lines, ""), told
    mended = corrected(cells, fix)
    with ipydevice.virtual_gpus(2):
        on_cards = values(mended, "cuda:0", case.result).cpu()
    torch.testing.assert_close(on_cards, values(mended, "cpu", case.result), rtol=1e-4, atol=1e-6)
    return found
