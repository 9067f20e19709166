"""`ipydevice fix` on notebooks that real kernels have run: what it makes of them runs, or it says what is left."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import Any

import pytest

from ipydevice.cli import main

BEGIN = """\
import torch, ipydevice
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
ipydevice.virtual_gpus(1).enable()
device = torch.device("cuda")"""
DATA = """\
train = DataLoader(TensorDataset(torch.randn(8, 6), torch.randint(5, (8,))), batch_size=4)
valid = DataLoader(TensorDataset(torch.randn(8, 6), torch.randint(5, (8,))), batch_size=4)"""
MODEL = """\
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(6, 8), nn.Linear(8, 5)
    def forward(self, x):
        return self.b(F.relu(self.a(x)))
model = Net().to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
criterion = nn.CrossEntropyLoss()"""
EPOCH = """\
def run_epoch(model, loader):
    total = 0.0
    for x, y in loader:
        out = model(x)
        loss = criterion(out, y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    return total"""
EVALUATE = """\
def evaluate(model, loader):
    found = []
    with torch.no_grad():
        for x, y in loader:
            found.append(model(x).argmax(1).numpy())
    return found"""
COLLATE = """\
def collate(rows):
    return {"x": torch.stack([x for x, _ in rows]), "y": torch.stack([y for _, y in rows])}
loader = DataLoader(TensorDataset(torch.randn(8, 6), torch.randint(5, (8,))), batch_size=4, collate_fn=collate)"""
OWN_LOADER = """\
class OnDevice:
    def __init__(self, loader): self.loader = loader
    def __iter__(self):
        for x, y in self.loader: yield x.to(device), y.to(device)
loader = OnDevice(DataLoader(TensorDataset(torch.randn(8, 6), torch.randint(5, (8,))), batch_size=4))"""

BOOKS = {
    "a loop with two strays": [
        DATA, MODEL, "for x, y in train:\n    loss = criterion(model(x), y)\n    loss.backward()",
    ],
    "a loop in a loop, with a number": [
        DATA, MODEL, "for epoch in range(2):\n    for n, (x, y) in enumerate(train):\n        out = model(x)\n"
        "        F.cross_entropy(out, y).backward()",
    ],
    "two loops in a cell": [
        DATA, MODEL, "for x, y in train:\n    x = x.to(device)\n    criterion(model(x), y).backward()\n"
        "seen = []\nfor x, y in valid:\n    seen.append(model(x).argmax(1).numpy())",
    ],
    "functions, of which one has not run yet": [
        DATA, MODEL, EPOCH, EVALUATE, "print(run_epoch(model, train))\nprint(len(evaluate(model, valid)))",
    ],
    "cells that have not run yet": [DATA, MODEL, EPOCH, EVALUATE, "run_epoch(model, train)", "evaluate(model, valid)"],
    "two errors, one edit": [DATA, MODEL, EPOCH, "run_epoch(model, train)", "run_epoch(model, valid)"],
    "two errors, one cell to edit": [
        "a = torch.ones(3, device=device)\nb = torch.ones(3)\nc = torch.zeros(3)", "d = a + b", "e = a * c",
    ],
    "three lines of a function": [
        "w = torch.randn(4, 3, device=device)\nb = torch.zeros(3)\nm = torch.ones(3)",
        "def f(x):\n    h = x @ w\n    h = h + b\n    return h * m", "x = torch.randn(2, 4)\nf(x)",
    ],
    "a batch that is a dict": [
        COLLATE, MODEL, "for batch in loader:\n    out = model(batch['x'])\n    criterion(out, batch['y']).backward()",
    ],
    "labels compared on the host": [
        DATA, MODEL, "right = 0\nfor x, y in train:\n    found = model(x).argmax(1).cpu()\n"
        "    right += (found == y).sum().item()",
    ],
    "numbers may stay on the host": [
        DATA, MODEL, "total, factor = torch.zeros(()), torch.tensor(2.0)\nfor x, y in train:\n    x = x.to(device)\n"
        "    loss = criterion(model(x), y)\n    total = total + loss.detach() * factor",
    ],
}  # fmt: skip


def ran(sources: list[str], *, on: bool = False) -> Any:
    """A notebook run by a real kernel, up to its first error or `on` behind it."""
    import nbformat
    from nbclient import NotebookClient
    from nbclient.exceptions import CellExecutionError

    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source) for source in sources])
    with contextlib.suppress(CellExecutionError):
        NotebookClient(book, allow_errors=on, kernel_name="python3", timeout=240).execute()
    return book


def errors(book: Any) -> list[str]:
    return [output.evalue for cell in book.cells for output in cell.outputs if output.output_type == "error"]


@pytest.mark.slow
@pytest.mark.parametrize("name", BOOKS)
def test_what_is_fixed_runs(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    import nbformat

    book = ran([BEGIN, *BOOKS[name]], on="errors" in name)
    assert errors(book)
    file = tmp_path / "a.ipynb"
    nbformat.write(book, file)
    assert main(["fix", str(file), "-o", str(tmp_path / "b.ipynb")]) == 0
    assert "run the notebook again" in capsys.readouterr().err
    fixed = nbformat.read(tmp_path / "b.ipynb", 4)
    assert errors(ran([cell.source for cell in fixed.cells])) == []


@pytest.mark.slow
def test_what_is_left_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What a loader of the user's own hands out may be anywhere."""
    import nbformat

    loop = "w = torch.ones(6)\nfor x, y in loader:\n    out = model(x * w)\n    criterion(out, y).backward()"
    file = tmp_path / "a.ipynb"
    nbformat.write(ran([BEGIN, OWN_LOADER, MODEL, loop]), file)
    before = file.read_bytes()
    assert main(["fix", str(file), "--in-place"]) == 1
    said = capsys.readouterr().err
    assert "only guesses" in said
    assert "run the notebook again" in said
    assert file.read_bytes() == before


ERROR = """\
---------------------------------------------------------------------------
RuntimeError                              Traceback (most recent call last)
Cell In[{number}], line {line}
----> {line} {source}

RuntimeError: Expected all tensors to be on the same device, but found at least two devices, cuda:0 and cpu!"""


def stored(sources: list[str], failing: list[tuple[int, int]]) -> str:
    """A notebook as it would be stored, its cells numbered from 1; (cell, line) of those that failed."""
    cells: list[dict[str, Any]] = []
    for number, source in enumerate(sources, 1):
        lines = [line for cell, line in failing if cell == number]
        shown = [ERROR.format(number=number, line=n, source=source.splitlines()[n - 1]).splitlines() for n in lines]
        outputs = [
            {"output_type": "error", "ename": "RuntimeError", "evalue": text[-1].partition(": ")[2], "traceback": text}
            for text in shown
        ]
        cells.append({"cell_type": "code", "execution_count": number, "id": f"c{number}", "metadata": {},
                      "outputs": outputs, "source": source})  # fmt: skip
    return json.dumps({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}, indent=1)


CELLS = [
    "import torch\ndevice = torch.device('cuda')",
    "a = torch.ones(3, device=device)\nb = torch.ones(3)\nc = torch.zeros(3)",
    "d = a + b",
    "e = a * c",
]


def test_two_errors_whose_edits_are_of_one_cell(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "a.ipynb"
    file.write_text(stored(CELLS, [(3, 1), (4, 1)]))
    assert main(["fix", str(file), "--in-place"]) == 0
    after = json.loads(file.read_text())["cells"][1]["source"]
    assert after == (
        "a = torch.ones(3, device=device)\nb = torch.ones(3, device=device)\nc = torch.zeros(3, device=device)"
    )
    assert "run the notebook again" in capsys.readouterr().err


def test_what_is_mended_already_is_said_and_left_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "a.ipynb"
    file.write_text(stored(CELLS, [(3, 1), (4, 1)]))
    main(["fix", str(file), "--in-place"])
    once = file.read_bytes()
    capsys.readouterr()
    assert main(["fix", str(file), "--in-place"]) == 1
    assert capsys.readouterr().err.count("nothing is apart any more; only another run tells") == 2
    assert file.read_bytes() == once


def test_lines_that_have_changed_since_are_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "a.ipynb"
    file.write_text(stored(CELLS, [(3, 1)]).replace('"d = a + b"', '"print(a)"'))
    before = file.read_bytes()
    assert main(["fix", str(file), "--in-place"]) == 1
    assert "have changed since it ran" in capsys.readouterr().err
    assert file.read_bytes() == before


def test_lines_that_have_moved_since_are_found(tmp_path: Path) -> None:
    file = tmp_path / "a.ipynb"
    file.write_text(stored(CELLS, [(3, 1)]).replace('"d = a + b"', '"# what\\n# for\\nd = a + b"'))
    assert main(["fix", str(file), "--in-place"]) == 0
    assert "b = torch.ones(3, device=device)" in json.loads(file.read_text())["cells"][1]["source"]
