"""What watches a block while it runs: nan and inf, memory, copies and waits."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from ipydevice import device_timeline, memory_watermark, nan_watch


class Broken(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(2, 2)
        self.head = nn.Sequential(Log())

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        found: torch.Tensor = self.head(self.first(x) * 0)
        return found


class Log(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.log()


def test_the_first_module_that_makes_inf() -> None:
    model = Broken().cuda()
    with pytest.raises(FloatingPointError) as caught, nan_watch(model):
        model(torch.ones(1, 2, device="cuda")).exp().sum()
    text = str(caught.value)
    assert text.startswith("torch.Tensor.log in head.0 (")
    assert "made inf out of finite numbers: 2 of 2 values" in text
    assert "Its inputs: float32[1, 2] on cuda:0 from" in text


def divide_in_place(x: torch.Tensor) -> None:
    x /= 0


@pytest.mark.parametrize(
    ("code", "call"),
    [
        (divide_in_place, "div"),
        (lambda x: torch.log(x * 0, out=torch.empty(3)), "log"),
        (lambda x: (x - 1) / (x - 1), "div"),
        (lambda x: (-x).sqrt(), "sqrt"),
        (lambda x: (x * 200).exp(), "exp"),
        (lambda x: x.mul_(-1).log_(), "log_"),
        (lambda x: F.cross_entropy((x * 3e38 * 3)[None], torch.zeros(1, dtype=torch.long)), "mul"),
    ],
)
def test_the_first_call(code: Any, call: str) -> None:
    with pytest.raises(FloatingPointError, match=call), nan_watch():
        code(torch.ones(3))


def test_what_is_asked_for_and_what_is_passed_on() -> None:
    with nan_watch():
        x = torch.zeros(2, 2)
        masked = x.masked_fill(torch.eye(2).bool(), float("-inf"))
        assert torch.isfinite((masked + x).softmax(-1)).all()
        torch.full((2,), float("nan")) + 1
        torch.empty(4, device="cuda").normal_()
        F.scaled_dot_product_attention(torch.rand(1, 2, 2), torch.rand(1, 2, 2), torch.rand(1, 2, 2), is_causal=True)


def test_nan_out_of_inf_is_new() -> None:
    inf = torch.full((2,), float("inf"))
    with pytest.raises(FloatingPointError, match=r"sub.*nan"), nan_watch():
        inf - inf


def test_nan_in_backward() -> None:
    x = torch.zeros(2, requires_grad=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # anomaly detection prints where the forward stood
        with pytest.raises(RuntimeError, match="SqrtBackward0' returned nan"), nan_watch():
            (x.sqrt() * torch.zeros(2)).sum().backward()
    assert not torch.is_anomaly_enabled()


def test_everything_is_put_back() -> None:
    hooks = torch.nn.modules.module
    before = len(hooks._global_forward_hooks), len(hooks._global_forward_pre_hooks)
    for _ in range(2):
        with pytest.raises(FloatingPointError), nan_watch():
            torch.zeros(1).log()
    assert (len(hooks._global_forward_hooks), len(hooks._global_forward_pre_hooks)) == before
    assert torch.zeros(1).log().isinf()
    with pytest.raises(TypeError, match=r"takes an nn\.Module"):
        nan_watch(3)


def test_a_card_that_fills(monkeypatch: pytest.MonkeyPatch) -> None:
    layer = nn.Linear(256, 1024, device="cuda:1")
    with pytest.warns(UserWarning, match=r"cuda:1 holds .* after Linear"), memory_watermark(1e-5) as mark:
        kept = [layer(torch.ones(64, 256, device="cuda:1")) for _ in range(3)]
    (crossing,) = mark.crossings
    assert crossing.device == "cuda:1"
    assert crossing.allocated >= 1e-5 * crossing.total
    assert crossing.module == "Linear"
    assert len(kept) == 3


def test_a_peak_that_is_over() -> None:
    with pytest.warns(UserWarning, match="cuda:0 holds"), memory_watermark(1e-3) as mark:
        torch.cat([torch.ones(3 << 20, device="cuda")]).sum()
    assert mark.crossings[0].module == ""


def test_a_card_with_room() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with memory_watermark() as mark:
            nn.Linear(2, 2).cuda()(torch.ones(1, 2, device="cuda"))
    assert mark.crossings == []
    with pytest.raises(ValueError, match="such as 0.9, got 90"):
        memory_watermark(90)


def test_copies_and_waits_by_line(tmp_path: Path) -> None:
    model = nn.Linear(4, 4).cuda()
    total = 0.0
    with device_timeline() as timeline:
        for _ in range(3):
            x = torch.ones(2, 4).to("cuda")
            total += model(x).sum().item()
    rows = {row.transfer.expression: row for row in timeline.rows}
    copied, read = rows['torch.ones(2, 4).to("cuda")'], rows["model(x).sum().item()"]
    assert (copied.transfer.kind, copied.transfer.source, copied.transfer.target) == ("copy", "cpu", "cuda:0")
    assert (copied.transfer.count, copied.transfer.bytes) == (3, 96)
    assert (read.transfer.kind, read.transfer.count) == ("sync", 3)
    assert copied.host_seconds > 0 and read.host_seconds > 0
    assert "add up on the device" in str(timeline)
    assert "<td>cpu → cuda:0</td>" in timeline._repr_html_()
    written = timeline.export(tmp_path / "trace.json")
    names = {event.get("name") for event in json.loads(written.read_text())["traceEvents"]}
    assert any(str(name).endswith(": .item()") for name in names)
    assert any(event.key == "aten::addmm" for event in timeline.profiler.key_averages())


def test_a_block_that_fails() -> None:
    timeline = device_timeline()
    with pytest.raises(ZeroDivisionError), timeline:
        torch.ones(2).to("cuda").sum().item() / 0
    assert [row.transfer.kind for row in timeline.rows].count("copy") == 1


def test_nothing_to_tell() -> None:
    with device_timeline() as timeline:
        torch.ones(2, device="cuda") * 2
    assert str(timeline) == "no copies between devices and no waits"
    with pytest.raises(RuntimeError, match="after its with block"), device_timeline() as timeline:
        timeline.export("never.json")


def test_in_a_notebook(shell: Any) -> None:
    shell.run("import torch, ipydevice\nx = torch.ones(8, device='cuda')")
    run = shell.run("with ipydevice.device_timeline() as timeline:\n    y = x.cpu()\ntimeline")
    assert run.error is None, run.text
    assert "In [2], line 2: x.cpu()  copy cuda:0 → cpu  32 B" in run.text
