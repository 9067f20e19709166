"""Where things are, whether they are together, and the device to work on."""

from __future__ import annotations

import re
import threading
from typing import Any

import numpy as np
import pytest
import shells
import torch
from torch import nn
from torch.nn.utils.rnn import pack_sequence

import ipydevice
from ipydevice import (
    DeviceContext,
    DeviceMismatchError,
    assert_on,
    check_gradient_devices,
    check_same_device,
    device_of,
    devices_of,
    get_device,
)

LAUNCHERS = ("LOCAL_RANK", "SLURM_LOCALID", "OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "CUDA_VISIBLE_DEVICES")


@pytest.fixture(autouse=True)
def alone(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in LAUNCHERS:
        monkeypatch.delenv(name, raising=False)


def split() -> nn.Sequential:
    return nn.Sequential(nn.Linear(2, 2).to("cuda:0"), nn.Linear(2, 2).to("cuda:1"))


def test_devices_of_anything() -> None:
    assert devices_of({"a": torch.ones(1, device="cuda:1"), "b": [torch.ones(1)]}) == (
        torch.device("cuda:1"),
        torch.device("cpu"),
    )
    assert devices_of(split()) == (torch.device("cuda:0"), torch.device("cuda:1"))
    assert devices_of(np.ones(1)) == (torch.device("cpu"),)
    assert devices_of([1, "a"]) == ()


def test_device_of_one_thing() -> None:
    assert device_of(nn.Linear(2, 2).cuda()) == torch.device("cuda:0")
    with pytest.raises(ValueError, match="type list with no tensor in it is on no device"):
        device_of([])
    with pytest.raises(
        DeviceMismatchError, match=r"this Sequential is on cuda:0, cuda:1: \[0\]\.weight and 1 more on cuda:0"
    ):
        device_of(split())


def test_objects_are_named_as_they_are_written() -> None:
    model, batch = nn.Linear(2, 2).cuda(), {"mask": torch.ones(2)}
    with pytest.raises(DeviceMismatchError) as caught:
        check_same_device(model, batch, labels=torch.ones(1, device="cuda"))
    assert str(caught.value) == "not on one device: model.weight and 2 more on cuda:0, batch['mask'] on cpu"
    assert ("labels", "cuda:0") in caught.value.placements
    with pytest.raises(DeviceMismatchError, match=r"argument 1.*argument 2"):
        check_same_device(*[torch.ones(1), torch.ones(1, device="cuda")])


def test_together() -> None:
    model = nn.Linear(2, 2).cuda()
    optimizer = torch.optim.Adam(model.parameters())
    model(torch.ones(1, 2, device="cuda")).sum().backward()
    optimizer.step()  # its step counters are on the host, as PyTorch wants them
    assert check_same_device(model, optimizer) == torch.device("cuda:0")
    assert check_same_device() is None
    assert check_same_device(3, "a") is None


def test_what_belongs_on_the_host_is_no_stray() -> None:
    packed = pack_sequence([torch.ones(2), torch.ones(1)]).cuda()  # its batch sizes are on the host
    assert device_of(packed) == torch.device("cuda:0")
    assert check_same_device(packed, torch.ones(1, device="cuda")) == torch.device("cuda:0")


def test_named_in_a_notebook(shell: Any) -> None:
    shell.run("import torch, ipydevice\nx, y = torch.ones(1), torch.ones(1, device='cuda')")
    run = shell.run("ipydevice.check_same_device(x, y)")
    assert "not on one device: x on cpu, y on cuda:0" in str(run.error)


def test_assertions_on_objects() -> None:
    x = torch.ones(1)
    assert_on("cpu", x)
    with pytest.raises(AssertionError, match="not on cuda:0: x on cpu"):
        assert_on("cuda", x)


def test_assertions_on_a_block() -> None:
    with assert_on("cuda:0"):
        torch.ones(2, device="cuda") * 2
    with pytest.raises(AssertionError, match=r"not all on cuda:0\n(.|\n)*torch.ones\(2\)"), assert_on("cuda:0"):
        torch.ones(2)

    @assert_on("cuda:0")
    def step(x: torch.Tensor) -> torch.Tensor:
        return x + torch.ones(2, device="cuda:1")

    with pytest.raises(AssertionError, match="1 device mistake"):
        step(torch.ones(2, device="cuda:0"))


def test_an_error_in_the_block_is_the_users() -> None:
    with pytest.raises(ZeroDivisionError), assert_on("cuda:0"):
        torch.ones(2).tolist()[0] / 0


def test_gradients_elsewhere() -> None:
    model = nn.Linear(2, 2)
    model(torch.ones(1, 2)).sum().backward()
    assert check_gradient_devices(model) == ()
    model.weight.data = model.weight.data.cuda()
    with pytest.raises(DeviceMismatchError, match=r"weight\.grad on cpu, weight on cuda:0; optimizer.zero_grad"):
        check_gradient_devices(model)
    assert check_gradient_devices(model, fix=True) == ("weight",)
    assert model.weight.grad is not None
    assert model.weight.grad.device == torch.device("cuda:0")
    assert check_gradient_devices(model) == ()
    with pytest.raises(TypeError, match=r"takes an nn\.Module"):
        check_gradient_devices(model.weight)


def test_the_device_of_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    assert get_device() == torch.device("cuda:0")
    with DeviceContext("cuda:1"):
        assert get_device() == torch.device("cuda:1")
    monkeypatch.setenv("LOCAL_RANK", "1")
    assert get_device() == torch.device("cuda:1")
    monkeypatch.setenv("LOCAL_RANK", "2")
    with pytest.raises(RuntimeError, match="LOCAL_RANK 2, and this machine shows it 2 cuda devices"):
        get_device()


def test_a_card_of_its_own_for_each_process(monkeypatch: pytest.MonkeyPatch) -> None:
    with ipydevice.virtual_gpus(1):
        monkeypatch.setenv("SLURM_LOCALID", "3")
        with pytest.raises(RuntimeError, match="start at most 1 process here"):
            get_device()
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3")
        assert get_device() == torch.device("cuda:0")


def test_current_device_comes_back() -> None:
    there = DeviceContext("cuda:1")
    with there as device:
        assert torch.cuda.current_device() == 1
        assert device == torch.device("cuda:1")
        with DeviceContext(0), there, there:
            assert torch.cuda.current_device() == 1
        assert torch.cuda.current_device() == 1
    assert torch.cuda.current_device() == 0
    with pytest.raises(ZeroDivisionError), there:
        1 / 0  # noqa: B018
    assert torch.cuda.current_device() == 0
    with DeviceContext("cpu"):
        assert torch.cuda.current_device() == 0


def test_one_context_for_many_threads() -> None:
    there = DeviceContext("cuda:1")
    both = threading.Barrier(2, timeout=20)
    seen: list[tuple[int, int, int]] = []

    def work(before: int) -> None:
        torch.cuda.set_device(before)
        both.wait()
        with there:
            both.wait()
            inside = torch.cuda.current_device()
            both.wait()
        seen.append((before, inside, torch.cuda.current_device()))

    threads = [threading.Thread(target=work, args=(n,)) for n in (0, 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(seen) == [(0, 1, 0), (1, 1, 1)]


def test_contexts_as_decorators() -> None:
    @DeviceContext("cuda:1")
    def where() -> int:
        return torch.cuda.current_device()

    assert where() == 1
    with pytest.raises(ValueError, match=re.escape("got 'gpu'")):
        DeviceContext("gpu")


def test_without_an_accelerator(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(torch.accelerator, "is_available", lambda: False)
    assert get_device() == torch.device("cpu")


@pytest.mark.parametrize(
    "asked",
    [
        "ipydevice.check_same_device(torch.ones(1), torch.ones(1, device='cuda'))",
        "ipydevice.assert_on('cuda:0', torch.ones(1))",
        "class Plain:\n    pass\nplain = Plain()\nplain.x = torch.ones(1)\nipydevice.to_device(plain, 'cuda')",
    ],
)
def test_says_itself_what_is_where(asked: str) -> None:
    """No panel stands under an error of the tools: it would guess at what their message tells."""
    with shells.shell() as shell:
        shell.run("%load_ext ipydevice\nimport torch, ipydevice")
        run = shell.run(asked)
        assert run.error is not None
        assert "✗" not in run.text
