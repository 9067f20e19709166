"""Listing makes no operation, copies nothing and never waits for a card."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

import ipydevice
from ipydevice import show
from ipydevice.listing import examine
from ipydevice.virtual import virtual_gpus

CELLS = ["model(host)", "for i in range(3):\n    y = big[i].to('cuda')", "w = torch.ones(3, device='cuda:1')"]


class Operations(TorchDispatchMode):
    def __init__(self) -> None:
        super().__init__()
        self.seen: list[str] = []

    def __torch_dispatch__(self, function: Any, kinds: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.seen.append(str(function))
        return function(*args, **(kwargs or {}))


@pytest.fixture
def workspace() -> Iterator[dict[str, Any]]:
    with virtual_gpus(2):
        model = nn.Sequential(nn.Linear(3, 3), nn.BatchNorm1d(3)).cuda()
        optimizer = torch.optim.Adam(model.parameters())
        model(torch.ones(2, 3).cuda()).sum().backward()
        optimizer.step()
        model[0].to("cuda:1")
        data = torch.utils.data.TensorDataset(torch.ones(4, 3).cuda())
        yield {
            "model": model, "optimizer": optimizer, "host": torch.ones(2, 3), "big": torch.empty(3, 6 * 2**20),
            "w": torch.ones(3, device="cuda:1"), "batch": {"x": torch.ones(3).cuda(), "n": [torch.ones(1)]},
            "loader": torch.utils.data.DataLoader(data), "sparse": torch.eye(3).to_sparse(),
            "scaler": torch.amp.GradScaler("cuda"), "generator": torch.Generator("cuda"), "stream": torch.cuda.Stream(),
            "packed": nn.utils.rnn.pack_sequence([torch.ones(2, 1).cuda()]), "kept": torch.ones(3).cuda(),
        }  # fmt: skip


def everything(space: dict[str, Any]) -> None:
    found, oddities = examine(space, verbose=True, cells=CELLS, kept=[("output", "Out[1]", [space.pop("kept")])])
    assert len(found.rows) > len(space)
    assert oddities
    assert show.text(found)
    assert show.html(found)


def test_nothing_is_copied_and_nobody_waits(workspace: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[Any] = []
    monkeypatch.setattr(torch.cuda, "synchronize", lambda *args: waits.append(args))
    with ipydevice.check() as report:
        everything(workspace)
    assert report.transfers == ()
    assert waits == []
    with Operations() as operations:
        examine(workspace, verbose=True, cells=CELLS)
    assert operations.seen == []


def test_the_counters_can_count(workspace: dict[str, Any]) -> None:
    with ipydevice.check() as report:
        workspace["w"].sum().item()
    assert [one.kind for one in report.transfers] == ["sync"]
    with Operations() as operations:
        workspace["w"].sum()
    assert len(operations.seen) >= 1
