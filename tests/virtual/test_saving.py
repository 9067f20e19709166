"""Saving, loading, pickling and copying keep devices as CUDA does."""

from __future__ import annotations

import copy
import io
import pickle
from collections import OrderedDict
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn


def saved(obj: Any, **options: Any) -> io.BytesIO:
    buffer = io.BytesIO()
    torch.save(obj, buffer, **options)
    buffer.seek(0)
    return buffer


@pytest.mark.parametrize("weights_only", [True, False])
@pytest.mark.parametrize("zipped", [True, False])
def test_devices_are_saved(cards: Any, weights_only: bool, zipped: bool) -> None:
    x = torch.arange(6.0, device="cuda:1")
    file = saved({"x": x, "view": x[2:4], "host": torch.ones(2)}, _use_new_zipfile_serialization=zipped)
    back = torch.load(file, weights_only=weights_only)
    assert [str(back[key].device) for key in ("x", "view", "host")] == ["cuda:1", "cuda:1", "cpu"]
    assert torch.equal(back["x"].cpu(), torch.arange(6.0))
    back["x"][2] = 9
    assert back["view"][0] == 9  # they still share memory


@pytest.mark.parametrize(
    ("location", "device"),
    [
        ("cpu", "cpu"),
        (torch.device("cpu"), "cpu"),
        ("cuda:0", "cuda:0"),
        ("cuda", "cuda:0"),
        ({"cuda:1": "cuda:0"}, "cuda:0"),
        ({"cuda:0": "cpu"}, "cuda:1"),
        (lambda storage, place: storage, "cpu"),
        (lambda storage, place: storage.cuda(0), "cuda:0"),
        (lambda storage, place: storage.cuda(1), "cuda:1"),
    ],
)
def test_map_location(cards: Any, location: Any, device: str) -> None:
    file = saved(torch.ones(3, device="cuda:1"))
    assert str(torch.load(file, map_location=location).device) == device


def test_a_file_of_another_machine(cards: Any) -> None:
    from ipydevice.virtual import virtual_gpus

    with virtual_gpus(4):
        file = saved(torch.ones(3, device="cuda:3"))
    with pytest.raises(
        RuntimeError,
        match=r"Attempting to deserialize object on CUDA device 3 but torch.cuda.device_count\(\) is 2. Please use",
    ):
        torch.load(file)


def test_a_file_of_a_card_needs_a_card() -> None:
    from ipydevice.virtual import virtual_gpus

    with virtual_gpus(1):
        file = saved(torch.ones(3, device="cuda"))
    with pytest.raises(RuntimeError, match=r"torch.cuda.is_available\(\) is False"):
        torch.load(file)
    file.seek(0)
    assert torch.load(file, map_location="cpu").sum() == 3


def test_files_are_those_of_pytorch(cards: Any, tmp_path: Path) -> None:
    """Nothing of ours is in the file: a plain PyTorch reads it."""
    torch.save(nn.Linear(2, 2).cuda().state_dict(), tmp_path / "model.pt")
    assert b"ipydevice" not in (tmp_path / "model.pt").read_bytes()


def test_checkpoint_of_a_training(cards: Any) -> None:
    def make() -> tuple[nn.Module, torch.optim.Optimizer]:
        model = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3)).to("cuda:1")
        return model, torch.optim.Adam(model.parameters())

    model, optimizer = make()
    model(torch.rand(4, 2, device="cuda:1")).sum().backward()
    optimizer.step()
    file = saved({"model": model.state_dict(), "optimizer": optimizer.state_dict()})
    loaded = torch.load(file, map_location="cpu", weights_only=True)
    twin, other = make()
    twin.load_state_dict(loaded["model"])
    other.load_state_dict(loaded["optimizer"])
    for p in twin.parameters():
        assert str(p.device) == str(other.state[p]["exp_avg"].device) == "cuda:1"
        assert other.state[p]["step"].device.type == "cpu"


def test_load_by_assignment(cards: Any) -> None:
    layer = nn.Linear(2, 2).cuda()
    layer.load_state_dict(OrderedDict(weight=torch.ones(2, 2), bias=torch.ones(2)), assign=True)
    assert layer.weight.device.type == "cpu"


def test_deepcopy_and_pickle(cards: Any) -> None:
    x = torch.ones(2, 3, device="cuda:1", requires_grad=True)
    x.sum().backward()
    for twin in (copy.deepcopy(x), pickle.loads(pickle.dumps(x)), copy.copy(x)):
        assert str(twin.device) == "cuda:1"
        assert twin.requires_grad
    deep = copy.deepcopy(x)
    assert deep.grad is not None
    assert str(deep.grad.device) == "cuda:1"
    with torch.no_grad():
        deep.add_(1)
    assert x.sum() == 6
    model = pickle.loads(pickle.dumps(nn.LSTM(2, 3).cuda()))
    assert {str(p.device) for p in model.parameters()} == {"cuda:0"}


def test_tensors_carry_no_attribute_of_ours(cards: Any) -> None:
    x = torch.ones(2, device="cuda")
    assert (x * 2).__dict__ == {}
    assert nn.Parameter(x).__dict__ == {}


def test_storages(cards: Any) -> None:
    x = torch.ones(4, device="cuda:1")
    storage = x.untyped_storage()
    assert str(storage.device) == "cuda:1"
    assert storage.is_cuda
    assert storage.get_device() == 1
    assert str(storage.clone().device) == "cuda:1"
    assert storage.cpu().device.type == "cpu"
    assert str(x.storage().device) == "cuda:1"
    with pytest.raises(RuntimeError, match="Attempted to set the storage"):
        torch.ones(2).set_(x)


def test_data_and_parameters(cards: Any) -> None:
    layer = nn.Linear(2, 2)
    weight = layer.weight
    layer.to("cuda:1")
    assert layer.weight is weight
    assert str(weight.data.device) == "cuda:1"
    weight.data = torch.zeros(2, 2)
    assert weight.device.type == "cpu"
    assert str(nn.Parameter(torch.ones(1, device="cuda")).device) == "cuda:0"
    layer.cpu()
    assert {p.device.type for p in layer.parameters()} == {"cpu"}


def test_meta(cards: Any) -> None:
    layer = nn.Linear(2, 2, device="meta")
    with pytest.raises(NotImplementedError, match="Cannot copy out of meta tensor"):
        layer.to("cuda")
    assert torch.ones(2, device="cuda").to("meta").device.type == "meta"
    assert nn.Linear(2, 2).cuda().to("meta").weight.device.type == "meta"
    layer.to_empty(device="cuda:1")
    assert str(layer.weight.device) == "cuda:1"
    with pytest.raises(RuntimeError, match="Tensor on device meta is not on the expected device cuda:0!"):
        nn.Linear(2, 2, device="meta")(torch.ones(1, 2, device="cuda"))
