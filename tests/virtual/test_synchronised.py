"""``nn.SyncBatchNorm`` across processes: as one process that sees the whole batch."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

pytestmark = pytest.mark.skipif(not torch.distributed.is_available(), reason="no torch.distributed")

RANK = """
import sys
import torch
import torch.distributed as dist
from torch import nn
from ipydevice.virtual import virtual_gpus

folder, rank = sys.argv[1], int(sys.argv[2])
dist.init_process_group("gloo", init_method=f"file://{folder}/meeting", rank=rank, world_size=2)
with virtual_gpus(2):
    card = f"cuda:{rank}"
    layer = nn.SyncBatchNorm(3).to(card)
    batch = torch.load(f"{folder}/batch.pt")
    x = batch[:1] if rank == 0 else batch[1:]  # of different lengths
    x = x.to(card).requires_grad_()
    out = layer(x)
    (out ** 2 * torch.arange(4.0, device=card)).sum().backward()
    assert str(out.device) == str(x.grad.device) == str(layer.running_var.device) == card
    for tensor in (layer.weight.grad, layer.bias.grad):
        dist.all_reduce(tensor)
    found = [out, x.grad, layer.weight.grad, layer.bias.grad, layer.running_mean, layer.running_var]
    torch.save([tensor.detach().cpu() for tensor in found], f"{folder}/{rank}.pt")
    try:
        layer(x.detach().cpu())
    except ValueError as error:
        assert "SyncBatchNorm expected input tensor to be on GPU" in str(error)
    else:
        raise AssertionError("an input on the host was taken")
dist.destroy_process_group()
"""


def test_two_ranks_equal_one(tmp_path: Path) -> None:
    torch.manual_seed(0)
    batch = torch.randn(4, 3, 5, 4)
    torch.save(batch, tmp_path / "batch.pt")
    ranks = [
        subprocess.Popen([sys.executable, "-c", RANK, str(tmp_path), str(rank)], stderr=subprocess.PIPE, text=True)
        for rank in (0, 1)
    ]
    errors = [rank.communicate(timeout=120)[1] for rank in ranks]
    assert [rank.returncode for rank in ranks] == [0, 0], errors

    layer = nn.BatchNorm2d(3)
    x = batch.clone().requires_grad_()
    out = layer(x)
    (out**2 * torch.arange(4.0)).sum().backward()
    first, second = (torch.load(tmp_path / f"{rank}.pt") for rank in (0, 1))
    expected: list[Any] = [out, x.grad, layer.weight.grad, layer.bias.grad, layer.running_mean, layer.running_var]
    joined = [torch.cat(pair) for pair in zip(first[:2], second[:2], strict=True)]
    for found, wanted in zip([*joined, *first[2:]], expected, strict=True):
        torch.testing.assert_close(found, wanted, rtol=1e-4, atol=1e-5)
    for found, wanted in zip(second[2:], expected[2:], strict=True):
        torch.testing.assert_close(found, wanted, rtol=1e-4, atol=1e-5)


def test_its_kernels_stay_refused_on_the_host(cards: Any) -> None:
    with pytest.raises(NotImplementedError, match="Could not run 'aten::batch_norm_stats'"):
        torch.batch_norm_stats(torch.ones(2, 3), 1e-5)
    mean, invstd = torch.batch_norm_stats(torch.ones(2, 3, device="cuda:1"), 1e-5)
    assert str(mean.device) == str(invstd.device) == "cuda:1"
