"""What virtual cards cannot show: UUIDs, contexts, streams, and times of the device itself."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import nn

import ipydevice

pytestmark = [
    pytest.mark.cuda,
    pytest.mark.skipif(torch.version.cuda is None or not torch.cuda.is_available(), reason="needs a real CUDA device"),
]


@pytest.fixture(autouse=True)
def cards() -> None:
    """No virtual cards in this file."""


def test_numbers_and_names() -> None:
    torch.ones(1, device="cuda")
    first = ipydevice.device_map()[0]
    assert first.uuid.startswith(("GPU-", "MIG-"))
    assert first.name == torch.cuda.get_device_name(0)
    assert first.smi is None or first.smi >= 0


def test_a_snapshot() -> None:
    before = ipydevice.device_snapshot()
    kept = torch.ones(1 << 20, device="cuda")
    after = ipydevice.device_snapshot()
    grown = next(change for change in before.diff(after) if change.what == "allocated")
    assert (grown.after or 0) - (grown.before or 0) >= kept.nbytes
    state = after.devices[0]
    assert state.total is not None and state.free is not None and 0 < state.free < state.total
    with torch.cuda.stream(torch.cuda.Stream()):  # type: ignore[no-untyped-call]
        assert ipydevice.device_snapshot().devices[0].stream != state.stream


def test_moving_pinned_memory() -> None:
    batch = {"x": torch.arange(1 << 20), "names": ["a"]}
    moved = ipydevice.to_device(batch, "cuda", pin=True)
    assert moved["x"].is_cuda
    back = ipydevice.to_device(moved, "cpu")  # waits, or these numbers would be wrong
    assert torch.equal(back["x"], batch["x"])


def test_times_of_the_device(tmp_path: Path) -> None:
    x = torch.ones(1 << 22)
    torch.ones(1, device="cuda")
    with ipydevice.device_timeline() as timeline:
        total = x.to("cuda").sum().item()
    assert total == 1 << 22
    copied = next(row for row in timeline.rows if row.transfer.kind == "copy")
    assert copied.transfer.bytes == x.nbytes
    assert copied.device_seconds > 0
    assert timeline.export(tmp_path / "trace.json").stat().st_size > 0


def test_nan_and_memory() -> None:
    with pytest.raises(FloatingPointError, match="log"), ipydevice.nan_watch():
        torch.zeros(2, device="cuda").log()
    with pytest.warns(UserWarning, match="cuda:0 holds"), ipydevice.memory_watermark(1e-9):
        nn.Linear(8, 8).cuda()(torch.ones(2, 8, device="cuda"))


def test_one_rank_of_nccl(tmp_path: Path) -> None:
    torch.distributed.init_process_group("nccl", init_method=f"file://{tmp_path}/group", rank=0, world_size=1)
    try:
        report = ipydevice.debug_ddp(nn.Linear(2, 2).cuda())
        assert report is not None
        assert report.rows[0].nccl
        assert "nccl" in report.rows[0].backend
        assert report.clean
    finally:
        torch.distributed.destroy_process_group()
