"""What PyTorch and the toolbox raise of many processes and many devices, in a real gloo group of one process."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.distributed as dist
from torch import nn

from ipydevice import assert_on, check_gradient_devices, check_same_device, device_of, get_device, to_device
from ipydevice.messages import Mismatch, recognise
from ipydevice.virtual import virtual_gpus

pytestmark = pytest.mark.skipif(
    not dist.is_available() or torch.cuda.is_available(), reason="needs torch.distributed and no GPU"
)


@pytest.fixture
def group(tmp_path: Path) -> Iterator[Callable[[str], None]]:
    def join(backend: str, **options: Any) -> None:
        dist.init_process_group(backend, init_method=f"file://{tmp_path}/{backend}", rank=0, world_size=1, **options)

    yield join
    if dist.is_initialized():
        dist.destroy_process_group()


@pytest.fixture
def cards() -> Iterator[None]:
    with virtual_gpus(2):
        yield


def said(call: Callable[[], Any]) -> Mismatch:
    with pytest.raises(Exception) as caught:  # noqa: PT011  # which one is the question
        call()
    mismatch = recognise(caught.value)
    assert mismatch is not None, caught.value
    assert mismatch.confidence == "exact", caught.value
    return mismatch


def cpu() -> torch.Tensor:
    return torch.ones(2)


def meta() -> torch.Tensor:
    return torch.ones(2, device="meta")


def parallel(*layers: nn.Module, **options: Any) -> nn.Module:
    return nn.parallel.DistributedDataParallel(nn.Sequential(*layers), **options)


IN_GLOO: dict[str, tuple[Callable[[], Any], str]] = {
    "collective of two devices": (lambda: dist.all_gather([meta()], cpu()), "PT287"),
    "device_ids of a model on the host": (lambda: parallel(nn.Linear(2, 2), device_ids=[0]), "PT280"),
    "a model of two device types": (
        lambda: parallel(nn.Linear(2, 2), nn.Linear(2, 2, device="meta")),
        "PT281",
    ),
    "SyncBatchNorm on the host, wrapped": (lambda: parallel(nn.Linear(2, 2), nn.SyncBatchNorm(2)), "PT451"),
    "SyncBatchNorm on the host": (lambda: nn.SyncBatchNorm(2)(torch.ones(2, 2)), "PT341"),
    "a group that NCCL would make": (lambda: dist.new_group(backend="nccl"), "PT289"),
}


@pytest.mark.parametrize("name", IN_GLOO)
def test_errors_in_a_gloo_group(name: str, group: Callable[[str], None]) -> None:
    group("gloo")
    call, id_ = IN_GLOO[name]
    assert said(call).id == id_


@pytest.mark.parametrize(
    "call", [lambda: dist.all_reduce(cpu()), dist.barrier, lambda: parallel(nn.Linear(2, 2))], ids=range(3)
)
def test_a_group_without_a_back_end_for_the_host(call: Callable[[], Any], group: Callable[[str], None]) -> None:
    group("cuda:gloo")
    mismatch = said(call)
    assert (mismatch.id, mismatch.devices) == ("PT282", ("cpu",))


@pytest.mark.skipif(not hasattr(torch, "AcceleratorError"), reason="torch before 2.8 says it otherwise")
@pytest.mark.parametrize(
    ("device", "id_", "kind"),
    [(0, "PT454", "availability"), (torch.device("cuda:0"), "PT453", "availability"), ("cpu", "PT455", "placement")],
)
def test_device_id(device: Any, id_: str, kind: str, group: Callable[..., None]) -> None:
    device = torch.device(device) if isinstance(device, str) else device
    mismatch = said(lambda: group("gloo", device_id=device))
    assert (mismatch.id, mismatch.kind) == (id_, kind)


OUTSIDE: dict[str, tuple[Callable[[], Any], str]] = {
    "replicas of a model on the host": (lambda: nn.parallel.replicate(nn.Linear(2, 2), [0, 1]), "PT273"),
    "gather on the host": (lambda: nn.parallel.gather([cpu(), cpu()], 0), "PT273"),
    "sum on the host": (lambda: nn.parallel.comm.reduce_add([cpu(), cpu()]), "PT411"),
    "autocast of a device": (lambda: torch.autocast(torch.device("cuda")), "PT462"),  # type: ignore[arg-type]
    "random state": (lambda: torch.set_rng_state(torch.get_rng_state().to("meta")), "PT083"),
}


@pytest.mark.parametrize("name", OUTSIDE)
def test_errors_without_a_group(name: str) -> None:
    call, id_ = OUTSIDE[name]
    assert said(call).id == id_


def test_the_toolbox_names_what_is_where() -> None:
    batch = {"x": cpu(), "y": meta()}
    together = said(lambda: check_same_device(batch))
    assert (together.id, together.library, together.devices) == ("LB110", "ipydevice", ("cpu", "meta"))
    assert said(lambda: device_of(batch)).id == "LB111"
    strict = said(lambda: assert_on("meta", batch))
    assert (strict.id, strict.argument_device, strict.reference_device) == ("LB113", "cpu", "meta")
    assert said(lambda: to_device([nn.Parameter(cpu())], "meta")).id == "LB116"
    assert said(lambda: to_device([iter([cpu()])], "meta")).id == "LB115"


def test_more_processes_than_cards(cards: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOCAL_RANK", "2")
    mismatch = said(get_device)
    assert (mismatch.id, mismatch.kind) == ("LB117", "availability")


def test_a_gradient_that_stayed(cards: None) -> None:
    model = nn.Linear(2, 2)
    model(torch.ones(1, 2)).sum().backward()
    model.weight.data = model.weight.data.cuda()
    mismatch = said(lambda: check_gradient_devices(model))
    assert mismatch.id == "LB112"
    assert mismatch.devices == ("cpu", "cuda:0")
