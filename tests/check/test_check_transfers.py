"""Copies and waits: in programs without mistakes exactly those that the source makes."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

import pytest
import torch
from conftest import Notebook

PROGRAMS = sorted((Path(__file__).parents[1] / "programs").glob("*.py"))

# Counted by hand in the sources. Sixteen batches in two epochs, and eight after the checkpoint.
IMAGE_CLASSIFIER = {
    (3, "Net().to(device)"): 15,  # 10 parameters and 5 buffers
    (3, "class_weights.to(device)"): 1,
    (4, "data.to(device)"): 16,
    (4, "target.to(device)"): 16,
    (4, "loss.item()"): 16,
    (4, "running.item()"): 2,
    (6, "data.to(device)"): 8,
    (6, "target.to(device)"): 8,
    # map_location has put the step counters of Adam on the card: read twice for each of 10 parameters
    (6, "optimizer.step()"): 160,
    (6, "loss.item()"): 8,
    (6, "running.item()"): 1,
    (7, "data.to(device)"): 2,
    (7, "target.to(device)"): 2,
    (7, "prediction.eq(target).sum().item()"): 2,
    (7, "recall.cpu()"): 1,
}
# Twelve batches of two entries; Normal() looks at both of its arguments.
VAE = {
    (3, "VAE().to(device)"): 12,  # 10 parameters and 2 buffers
    (4, "value.to(device, non_blocking=True)"): 24,
    (4, "torch.distributions.Normal(mu, (0.5 * logvar).exp())"): 24,
    (4, "torch.distributions.Normal(self.prior_mean, self.prior_std)"): 24,
    (4, "scaler.step(optimizer)"): 12,
    (4, "loss.item()"): 12,
    (5, "p.to(device)"): 2,
    (5, "torch.distributions.Normal(self.prior_mean, self.prior_std)"): 2,
    (5, "torch.cat([pictures.flatten(1), samples]).cpu()"): 1,
}


@pytest.fixture(autouse=True)
def checked_arguments(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first torch.compile of a process stops distributions from checking theirs (torch/_dynamo/eval_frame.py)."""
    monkeypatch.setattr(torch.distributions.Distribution, "_validate_args", True)


EXPECTED = {"image_classifier": IMAGE_CLASSIFIER, "vae": VAE}


@pytest.mark.parametrize("path", PROGRAMS, ids=[path.stem for path in PROGRAMS])
def test_clean_programs(notebook: Notebook, path: Path) -> None:
    """No finding, the losses of an unchecked run on the host, and the copies that the source makes."""
    notebook.names.update(DEV="cuda:0", DEV2="cuda:1", HOST="cpu")
    cells = path.read_text("utf-8").split("# %%\n")
    counted: Counter[tuple[int, str]] = Counter()
    random.seed(0)
    for number, cell in enumerate(cells):
        torch.manual_seed(0)
        checked = notebook.check(cell)
        assert checked.run.error is None, checked.run.text
        assert checked.report.findings == ()
        for transfer in checked.report.transfers:
            counted[number, transfer.expression] += transfer.count
    host = {"__name__": "__main__", "DEV": "cpu", "DEV2": "cpu", "HOST": "cpu"}
    random.seed(0)
    for cell in cells:
        torch.manual_seed(0)
        exec(cell, host)
    assert notebook.names["losses"] == pytest.approx(host["losses"], rel=1e-6, abs=1e-8)
    if path.stem in EXPECTED:
        assert dict(counted) == EXPECTED[path.stem]


WAITS = """x = torch.arange(6.0, device=device)
if x.any():
    pass
a = float(x[1])
b = x.tolist()
c = x[x > 2]
d = torch.nonzero(x)
e = torch.where(x > 1)
f = x.unique()
g = torch.equal(x, x)
h = f"{x.sum():.2f}"
i = x.masked_select(x > 1)
j = list(range(6))[x[2].long()]
k = torch.tensor([x[0], x[1]])
l = F.one_hot(x.long())
m = 3.0 in x
str(x)
n = x.repeat_interleave(x.long())
o = x[x[1].long()]
x
"""


def test_every_kind_of_wait(notebook: Notebook) -> None:
    report = notebook.check(WAITS).report
    assert [transfer.place.line for transfer in report.transfers] == [3, *range(5, 22)]
    assert {transfer.kind for transfer in report.transfers} == {"sync"}
    assert {transfer.source for transfer in report.transfers} == {"cuda:0"}
    assert not any(transfer.loop or transfer.explicit for transfer in report.transfers)


def test_on_the_host_nothing_waits(notebook: Notebook) -> None:
    assert notebook.check(WAITS.replace("device=device", "device='cpu'")).report.transfers == ()


def test_calls_that_need_no_answer(notebook: Notebook) -> None:
    cell = """x = torch.arange(6.0, device=device)
x[2], x[1:3], x[None], x[..., 0], x[[1, 2]].shape
x[torch.tensor(1)], x[x.long()[1:]]
x[0] = 1.0
torch.where(x > 1, x, 0.0)
x.repeat_interleave(2)
F.one_hot(x.long(), 6)
x.to(device), x.cuda(), x.to(torch.float16), x.clone();
x[1:3] = x[2:4]
"""
    transfers = notebook.check(cell).report.transfers
    assert [transfer.expression for transfer in transfers] == []


def test_copies_that_nobody_asked_for(notebook: Notebook) -> None:
    cell = (
        "x = torch.arange(6.0, device=device)\ny = x[torch.tensor([1, 2])]\n"
        "x[1:3] = torch.ones(2)\nx.copy_(torch.ones(6));\n"
    )
    found = [
        (each.place.line, each.kind, each.source, each.target, each.explicit)
        for each in notebook.check(cell).report.transfers
    ]
    assert found == [
        (3, "copy", "cpu", "cuda:0", False),
        (4, "copy", "cpu", "cuda:0", False),
        (5, "copy", "cpu", "cuda:0", True),
    ]


def test_bytes_and_counts(notebook: Notebook) -> None:
    cell = "x = torch.zeros(100, 10)\nfor n in range(7):\n    y = x.to(device, torch.float16)\n    z = y.cpu()\n"
    first, second = notebook.check(cell).report.transfers
    assert (first.count, first.bytes, first.source, first.target) == (7, 7 * 100 * 10 * 2, "cpu", "cuda:0")
    assert (second.count, second.bytes, second.source, second.target) == (7, 7 * 100 * 10 * 2, "cuda:0", "cpu")


@pytest.mark.parametrize(
    ("body", "advice"),
    [
        ("total += loss.item()", "read it once, after the loop"),
        ("y = batch.to(device)", "pin_memory=True"),
        ("y = table.to(device)", "move it once, before the loop"),
        ("net.to('cuda:1'); net.to(device)", "move the module once"),
        ("if loss > 1:\n        pass", "every n-th step"),
        ("print(loss)", "print every n-th step"),
        ("kept.append(big.detach().cpu())", "copy them once, after the loop"),
        ("y = big[big > 0]", "torch.where()"),
        ("y = big[index]", "make the index on cuda:0"),
        ("w = torch.tensor([1.0, 2.0], device=device)", "build the tensor once"),
        ("y = big.to('cuda:1')[:1]", "move it once, before the loop"),
        ("n = torch.distributions.Normal(big, 1.0)", "validate_args=False"),
    ],
)
def test_advice_in_a_loop(notebook: Notebook, body: str, advice: str) -> None:
    notebook.run(
        "loss = torch.tensor(2.0, device=device); table = torch.ones(5); kept = []; total = 0\n"
        "big = torch.ones(5, device=device); index = torch.tensor([0, 1])\n"
        "net = nn.Linear(2, 2).to(device); loader = [torch.ones(n + 1) for n in range(3)]\n"
    )
    transfers = notebook.check(f"for batch in loader:\n    {body}\n").report.transfers
    assert transfers
    assert all(transfer.loop and transfer.count >= 3 for transfer in transfers)
    assert any(advice in transfer.advice for transfer in transfers), transfers


def test_outside_a_loop_there_is_no_advice(notebook: Notebook) -> None:
    cell = "x = torch.ones(3, device=device)\nx.sum().item()\nfor n in x.tolist():\n    pass\nelse:\n    x.cpu()\n"
    for transfer in notebook.check(cell).report.transfers:
        assert not transfer.loop
        assert transfer.advice == ""


def test_a_function_called_in_a_loop(notebook: Notebook) -> None:
    cell = "def step(x):\n    return x.item()\nx = torch.ones((), device=device)\nfor _ in range(4):\n    step(x)\n"
    (transfer,) = notebook.check(cell).report.transfers
    assert (transfer.count, transfer.loop, transfer.place.line) == (4, True, 3)
    assert transfer.place.function == "step"
