"""The table's edits of the cells, carried out in a real shell: nothing is odd afterwards, nor in a new session."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterator
from typing import Any

import pytest
from shells import Shell

SETUP = """
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
import ipydevice
gpus = ipydevice.virtual_gpus(2).enable()
device = "cuda:0"
"""
CLASS = """
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc = nn.Linear(3, 3)
            {}
        def forward(self, x):
            return {}
"""
SITUATIONS = {
    "tensor attribute": [CLASS.format("self.pe = torch.ones(3)", "self.fc(x) + self.pe"), "net = Net().to(device)"],
    "tensor attribute, deeper": [
        CLASS.format("self.pe = torch.ones(3)", "self.fc(x) + self.pe"), "net = nn.Sequential(Net()).to(device)",
    ],
    "list of layers": [
        CLASS.format("self.heads = [nn.Linear(3, 3)]", "self.heads[0](self.fc(x))"), "net = Net().to(device)",
    ],
    "dictionary of layers": [
        CLASS.format("self.heads = {'a': nn.Linear(3, 3)}", "self.heads['a'](self.fc(x))"), "net = Net().to(device)",
    ],
    "a layer left behind": ["net = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 3))", "net[0].to(device);"],
    "a layer put in afterwards": [
        "net = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 3)).to(device)",
        "net.head = nn.Linear(3, 2)",
    ],
    "an input": ["net = nn.Linear(3, 3).to(device)", "x = torch.ones(2, 3)", "y = net(x)"],
    "a list of inputs": ["net = nn.Linear(3, 3).to(device)", "xs = [torch.ones(2, 3)]", "y = net(*xs)"],
    "a model": ["net = nn.Linear(3, 3)", "x = torch.ones(2, 3, device=device)", "y = net(x)"],
    "labels": [
        "net, loss = nn.Linear(3, 3).to(device), nn.MSELoss()", "x = torch.ones(2, 3, device=device)",
        "y = torch.zeros(2, 3)", "l = loss(net(x), y)",
    ],
    "state of the optimizer": [
        "net = nn.Linear(3, 3)",
        "opt = torch.optim.Adam(net.parameters())\nnet(torch.ones(2, 3)).sum().backward()\nopt.step()\nopt.zero_grad()",
        "net.to(device);",
    ],
    "optimizer of another model": [
        "net = nn.Linear(3, 3).to(device)", "opt = torch.optim.SGD(net.parameters(), lr=0.1)",
        "net = nn.Linear(3, 3).to(device)", "opt.zero_grad()",
    ],
    "alone on the second card": [
        "net = nn.Linear(3, 3).to('cuda')\nx = torch.ones(3, device='cuda')", "w = torch.ones(3, device='cuda:1')",
    ],
    "big data that is not pinned": [
        "data = TensorDataset(torch.empty(20, 2**20))", "net = nn.Linear(20, 1).to(device)",
        "loader = DataLoader(data, batch_size=10)", "for (xb,) in loader:\n    y = xb.to(device)\ndel xb, y",
    ],
    "weights still on meta": [
        "good = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2)).state_dict()",
        "net = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2, device='meta'))",
    ],
}  # fmt: skip


@pytest.fixture
def loaded(shell: Shell) -> Iterator[Shell]:
    shell.run("%load_ext ipydevice")
    assert shell.run(SETUP).error is None
    yield shell
    shell.run("gpus.disable()")


def table(shell: Shell, line: str = "") -> dict[str, Any]:
    found: dict[str, Any] = json.loads(shell.run(f"%devices {line} --json").text)
    return found


def odd(shell: Shell) -> dict[str, str]:
    return {row["name"]: row["odd"] for row in table(shell, "--odd")["rows"]}


@pytest.mark.parametrize("name", SITUATIONS)
def test_edit_mends_cells_and_objects(name: str, loaded: Shell) -> None:
    cells = [textwrap.dedent(cell).strip() for cell in SITUATIONS[name]]
    for cell in cells:
        run = loaded.run(cell)
        assert run.error is None or "same device" in str(run.error)
    assert odd(loaded)
    fix = next(fix for fix in table(loaded)["fixes"] if fix["kind"] == "edit")
    assert fix["edits"] or name == "optimizer of another model"
    for again in fix["rerun"]:
        assert again["source"] in [*cells, *(edit["after"] for edit in fix["edits"])]
        assert loaded.run(again["source"]).error is None
    assert odd(loaded) == {}
    # The cells as they are now run from the top, too.
    if fix["edits"]:
        mended = {edit["before"]: edit["after"] for edit in fix["edits"]}
        loaded.run("gpus.disable()\n%reset -f")
        loaded.run(SETUP)
        for cell in cells:
            assert loaded.run(mended.get(cell, cell)).error is None
        assert odd(loaded) == {}


def test_the_edit_stands_before_the_repair_and_is_offered_by_number(loaded: Shell) -> None:
    loaded.run("net = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 3))")
    loaded.run("net[0].to(device);")
    fixes = table(loaded)["fixes"]
    assert [(fix["kind"], fix["title"]) for fix in fixes] == [
        ("edit", "move net where it is made"),
        ("repair", "`net.to('cuda:0')`"),
    ]
    text = loaded.run("%devices").text
    assert "move net where it is made" in text
    assert "re-runs In [" in text
    assert ".to(device)" in loaded.run("%devicefix 1").text
    loaded.ip.rl_next_input = None


def test_a_model_that_is_torn_apart_after_its_move_is_not_moved_again_where_it_is_made(loaded: Shell) -> None:
    loaded.run("net = nn.Linear(3, 3).to('cuda:0')")
    loaded.run("net.bias.data = net.bias.data.cpu()")
    assert [fix["kind"] for fix in table(loaded)["fixes"]] == ["repair"]


def test_without_a_source_in_the_cells_the_repair_stands_alone(loaded: Shell) -> None:
    loaded.run('exec("net = nn.Sequential(nn.Linear(3, 3).to(device), nn.Linear(3, 3))")')
    assert [fix["kind"] for fix in table(loaded)["fixes"]] == ["repair"]


def test_the_edits_of_many_odd_rows_are_few(loaded: Shell) -> None:
    for i in range(12):
        loaded.run(f"net{i} = nn.Sequential(nn.Linear(3, 3).to(device), nn.Linear(3, 3))")
    fixes = table(loaded)["fixes"]
    assert len(fixes) == 9
    assert sum(fix["kind"] == "edit" for fix in fixes) == 4


def test_the_function_offers_them_too(loaded: Shell) -> None:
    loaded.run("net = nn.Sequential(nn.Linear(3, 3).to(device), nn.Linear(3, 3))")
    loaded.run("inv = ipydevice.inventory()")
    assert loaded.names["inv"].fixes[0].edits
