"""Snapshots, device numbers, tracked tensors, mixed precision."""

from __future__ import annotations

import gc
import json
import os
import subprocess
import sys
import threading
import weakref
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from ipydevice import TensorTracker, amp_check, device_map, device_snapshot
from ipydevice.toolbox import numbering

ROOT = Path(__file__).parents[2]


def test_what_changed_between_two_snapshots() -> None:
    torch.ones(1, device="cuda")  # starts CUDA
    before = device_snapshot()
    assert [state.device for state in before.devices] == ["cuda:0", "cuda:1"]
    kept = torch.ones(1024, device="cuda:1")
    after = device_snapshot()
    changes = {(change.device, change.what): change for change in before.diff(after)}
    assert {device for device, _ in changes} == {"cuda:1"}
    assert str(changes["cuda:1", "allocated"]).startswith("cuda:1 allocated +4.0 KiB, now ")
    assert before.diff(before) == ()
    torch.cuda.set_device(1)
    try:
        (moved,) = [change for change in after.diff(device_snapshot()) if change.what == "current device"]
        assert (moved.before, moved.after) == ("cuda:0", "cuda:1")
    finally:
        torch.cuda.set_device(0)
    assert "cuda:1 Virtual GPU: allocated" in str(after)
    assert json.loads(json.dumps(after.to_dict()))["devices"][1]["total"] == 8 << 30
    with pytest.raises(TypeError, match="takes a snapshot"):
        before.diff(kept)  # type: ignore[arg-type]


def test_equal_moments_are_equal() -> None:
    assert device_snapshot() == device_snapshot()


@pytest.mark.parametrize(
    ("visible", "entries"),
    [("2,0", ["2", "0"]), ("0,1,-1,2", ["0", "1"]), ("1,1", []), ("", []), ("GPU-8a, 1", ["GPU-8a", "1"]), ("x,1", [])],
)
def test_the_variable_as_the_driver_reads_it(visible: str, entries: list[str]) -> None:
    assert numbering.entries_of(visible) == entries


def test_the_map(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    plain = device_map()
    assert [(d.logical, d.physical, d.name) for d in plain] == [
        ("cuda:0", "0", "Virtual GPU"),
        ("cuda:1", "1", "Virtual GPU"),
    ]
    assert plain.current == "cuda:0"
    assert "cuda:0 is card 0: Virtual GPU  (current)" in str(plain)


@pytest.mark.parametrize(
    ("value", "kind"),
    [("3", "changed_after_start"), ("0,1,2", "changed_after_start"), ("0,x,1", "visible_stops"), ("1,1", "all_hidden")],
)
def test_troubles_of_the_numbering(value: str, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    torch.ones(1, device="cuda")  # CUDA is in use
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", value)
    assert kind in [trouble.kind for trouble in device_map().troubles]


def test_the_numbers_through_the_variable() -> None:
    """Given from the start, in a process of its own, the numbers are taken as they are."""
    code = (
        "import torch, ipydevice\n"
        "with ipydevice.virtual_gpus(2):\n"
        "    torch.ones(1, device='cuda')\n"
        "    print(ipydevice.device_map())\n"
        "    import os; os.environ['CUDA_VISIBLE_DEVICES'] = '5,6'\n"
        "    print(ipydevice.device_map())\n"
    )
    env = {**os.environ, "PYTHONPATH": str(ROOT), "CUDA_VISIBLE_DEVICES": "3,1"}
    ended = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True)
    assert ended.stdout.splitlines()[:2] == [
        "cuda:0 is card 3: Virtual GPU  (current)",
        "cuda:1 is card 1: Virtual GPU",
    ]
    assert "✗ perhaps: CUDA_VISIBLE_DEVICES is not what it was when this process began ('3,1')" in ended.stdout


def test_where_a_tensor_has_been() -> None:
    tracker = TensorTracker(limit=3)
    x = torch.ones(2)
    for _ in range(4):
        tracker.track(x=x)
    tracker.track(x=x.cuda(), batch={"y": [x]})
    first, second = tracker.history("x")
    assert (first.device, first.shape, first.dtype, first.count) == ("cpu", (2,), "float32", 4)
    assert (second.device, second.count) == ("cuda:0", 1)
    assert first.place.source == "tracker.track(x=x)"
    assert tracker.moves("x") == ((first, second),)
    assert tracker.names == ("x", "batch['y'][0]")
    assert "cuda:0  float32[2]" in str(tracker)


def test_notes_are_bounded_and_hold_nothing() -> None:
    tracker = TensorTracker(limit=2)
    for n in range(5):
        tracker.track(x=torch.ones(n + 1))
    assert [seen.shape for seen in tracker.history("x")] == [(4,), (5,)]
    for n in range(TensorTracker.MOST_NAMES + 5):
        tracker.track(**{f"name{n}": torch.ones(1)})
    assert len(tracker.names) == TensorTracker.MOST_NAMES
    x = torch.ones(3)
    alive = weakref.ref(x)
    tracker.track(x=x)
    del x
    gc.collect()
    assert alive() is None


def test_threads_share_a_tracker() -> None:
    tracker, x = TensorTracker(), torch.ones(1)
    threads = [threading.Thread(target=lambda: [tracker.track(x=x) for _ in range(50)]) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(seen.count for seen in tracker.history("x")) == 200


def test_bad_input_to_the_tracker() -> None:
    with pytest.raises(ValueError, match="from 1 on, but got 0"):
        TensorTracker(0)
    with pytest.raises(TypeError, match="n is of type int, with no tensor in it"):
        TensorTracker().track(n=3)
    with pytest.raises(KeyError, match="'y' was never tracked; tracked are none"):
        TensorTracker().history("y")


def model_and_optimizer() -> tuple[Any, Any]:
    model = nn.Linear(2, 2).cuda()
    return model, torch.optim.SGD(model.parameters(), 0.1, momentum=0.9)


def kinds(*given: Any) -> list[str]:
    return [trouble.kind for trouble in amp_check(*given)]


def test_a_right_step_of_mixed_precision() -> None:
    model, optimizer = model_and_optimizer()
    scaler = torch.amp.GradScaler("cuda")
    with torch.autocast("cuda"):
        loss = model(torch.ones(1, 2, device="cuda")).sum()
        assert not amp_check(model, optimizer, scaler)
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
    found = amp_check(model, optimizer, scaler)
    assert not found
    assert str(found) == "mixed precision: nothing wrong"


def test_wrong_steps_of_mixed_precision() -> None:
    model, optimizer = model_and_optimizer()
    assert kinds(model, optimizer, torch.amp.GradScaler("cpu")) == ["scaler_device"]
    assert kinds(nn.Linear(2, 2), None, torch.amp.GradScaler("cuda")) == ["scaler_device"]
    assert kinds(model, optimizer, torch.amp.GradScaler("cuda", enabled=False)) == ["scaler_off"]
    assert "float16_parameters" in kinds(nn.Linear(2, 2).cuda().half(), None, torch.amp.GradScaler("cuda"))
    assert kinds(nn.Linear(2, 2).cuda(), optimizer) == ["other_parameters"]
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert kinds(model) == ["autocast_device"]
    scaler = torch.amp.GradScaler("cuda", init_scale=0.25)
    scaler.scale(torch.ones(1, device="cuda"))
    assert kinds(model, optimizer, scaler) == ["scale_shrunk"]
    elsewhere = torch.amp.GradScaler("cuda")
    elsewhere.scale(torch.ones(1, device="cuda:1"))
    assert kinds(model, optimizer, elsewhere) == ["scaler_device"]


def test_state_and_gradients_of_mixed_precision() -> None:
    model, optimizer = model_and_optimizer()
    model(torch.ones(1, 2, device="cuda")).sum().backward()
    optimizer.step()
    model.weight.data = model.weight.data.to("cuda:1")
    model.bias.data = model.bias.data.to("cuda:1")
    assert kinds(model, optimizer) == ["gradient_device", "optimizer_state"]


@pytest.mark.parametrize("given", [(3,), (nn.Linear(1, 1), 3), (nn.Linear(1, 1), None, 3)])
def test_bad_input_to_the_check(given: tuple[Any, ...]) -> None:
    with pytest.raises(TypeError, match=r"nn\.Module|Optimizer|GradScaler"):
        amp_check(*given)
