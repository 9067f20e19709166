"""Each remedy is carried out, and then nothing is odd any more."""

from __future__ import annotations

import textwrap
import zlib
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch import nn

from ipydevice import show
from ipydevice.diagnosis import Inventory
from ipydevice.listing import select
from ipydevice.show import as_widget
from ipydevice.virtual import virtual_gpus


@pytest.fixture(autouse=True)
def cards() -> Iterator[None]:
    with virtual_gpus(2):
        yield


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(3, 3)
        self.pe = torch.ones(3)
        self.rows = [torch.ones(3)]
        self.heads = {"a": nn.Linear(3, 3)}

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.heads["a"](self.fc(x) + self.pe + self.rows[0])


SITUATIONS = {
    "attributes that no move reaches": "net = Net().cuda()\nx = torch.ones(2, 3).cuda()",
    "deeper": "net = nn.Sequential(Net()).cuda()",
    "a layer left behind": "net = nn.Sequential(nn.Linear(3, 3).cuda(), nn.Linear(3, 3))",
    "an input on the host": "net = nn.Linear(3, 3).cuda()\nx = torch.ones(2, 3)\nnet(x)",
    "a list on the host": "net = nn.Linear(3, 3).cuda()\nxs = [torch.ones(2, 3)]\nnet(*xs)",
    "a model on the host": "net = nn.Linear(3, 3)\nx = torch.ones(2, 3).cuda()\nnet(x)",
    "state of the optimizer": """
        net = nn.Linear(3, 3)
        opt = torch.optim.Adam(net.parameters())
        net(torch.ones(2, 3)).sum().backward()
        opt.step()
        opt.zero_grad()
        net.cuda()
    """,
    "optimizer of another model": """
        net = nn.Linear(3, 3)
        opt = torch.optim.SGD(net.parameters(), lr=0.1)
        net = nn.Linear(3, 3)
    """,
    "gradient elsewhere": "p = nn.Parameter(torch.ones(3))\np.sum().backward()\np.data = p.data.cuda()",
    "alone on the second card": """
        net = nn.Linear(3, 3).to('cuda')
        x = torch.ones(3, device='cuda')
        w = torch.ones(3, device='cuda:1')
    """,
}


def run(cell: str, space: dict[str, Any]) -> None:
    try:
        exec(cell, space)
    except RuntimeError as error:
        assert "same device" in str(error)  # noqa: PT017


@pytest.mark.parametrize("name", SITUATIONS)
def test_remedy_mends(name: str) -> None:
    space: dict[str, Any] = {"torch": torch, "nn": nn, "Net": Net}
    cell = textwrap.dedent(SITUATIONS[name])
    run(cell, space)
    found = select(space, cells=[cell])
    odd = [row for row in found.rows if row.odd]
    assert odd
    assert all(row.remedy for row in odd)
    assert [fix.setup for fix in found.fixes] == [row.remedy for row in odd]
    cells = [cell]
    for fix in found.fixes:
        assert fix.setup is not None
        run(fix.setup, space)
        cells.append(fix.setup)
    assert [row.odd for row in select(space, cells=cells).rows if row.odd] == []
    assert "_moved" not in space


def test_the_mended_model_runs_and_moves_on() -> None:
    space: dict[str, Any] = {"torch": torch, "net": Net().cuda()}
    for fix in select(space).fixes:
        run(fix.setup or "", space)
    assert space["net"](torch.ones(2, 3).cuda()).device.type == "cuda"
    assert space["net"].to("cuda:1").pe.device == torch.device("cuda:1")


def test_views_offer_the_fix_and_number_it() -> None:
    found = select({"net": nn.Sequential(nn.Linear(3, 3).cuda(), nn.Linear(3, 3))})
    assert "`net.to('cuda:0')`" in show.text(found)
    assert 'data-fix="0"' in show.html(found)
    data = zlib.decompress(as_widget.data(found, show.tree_of(found), "uid"))
    assert b'"setup":"net.to(\'cuda:0\')"' in data


def test_what_no_code_can_mend_says_what_to_write() -> None:
    found = select({"net": nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2, device="meta"))})
    assert found.fixes == ()
    assert "write `net.load_state_dict(weights, assign=True)`" in show.text(found, width=200)


def test_layers_of_a_split_module() -> None:
    net = nn.Sequential(*(nn.Linear(2, 2) for _ in range(5)), nn.ReLU())
    net[:2].to("cuda:0")
    net[2:].to("cuda:1")
    (row,) = select({"net": net}).rows
    assert [(run.device, run.count, run.first, run.last) for run in row.layers] == [
        ("cuda:0", 2, "[0]", "[1]"),
        ("cuda:1", 3, "[2]", "[4]"),
    ]
    text, page = show.text(Inventory((row,))), show.html(Inventory((row,)))
    assert "aabbb" in text
    assert "cuda:1: [2] to [4] (3 layers)" in text
    assert "[0] to [1] on cuda:0 (2 layers)" in page
    assert select({"net": net.cuda()}).rows[0].layers == ()
