"""Modules that the checked code calls: what is stray in them is told before they run wrong."""

from __future__ import annotations

import pytest
import torch
from conftest import Notebook

import ipydevice
from ipydevice.virtual import virtual_gpus

NET = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(3, 3)
        self.scale = torch.ones(3)
    def forward(self, x, scaled=False):
        return self.fc(x) * self.scale if scaled else self.fc(x)
x = torch.ones(2, 3, device=device)
"""


def odd(notebook: Notebook, cell: str) -> dict[str, str]:
    checked = notebook.check(cell)
    assert checked.run.error is None, checked.run.text
    assert checked.report.findings == ()
    return {row.name: row.odd for row in checked.report.odd}


def test_a_plain_tensor_attribute(notebook: Notebook) -> None:
    """Nothing fails here, and would with the first call that needs it."""
    notebook.run(NET + "net = Net().to(device)")
    found = odd(notebook, "y = net(x)")
    assert list(found) == ["net"] and "scale" in found["net"] and "register_buffer" in found["net"]
    report = notebook.names["report"]
    assert "net.register_buffer" in report.mends[0].setup
    number = report.fixes.index(report.mends[0]) + 1
    assert "register_buffer" in notebook.run(f"%devicefix {number}").text
    notebook.run(report.mends[0].setup)
    assert odd(notebook, "y = net(x, scaled=True)") == {}


def test_how_it_was_when_it_was_called(notebook: Notebook) -> None:
    notebook.run("net = nn.Sequential(nn.Linear(3, 3).to(device), nn.ReLU())\nnet.append(nn.Linear(3, 3))")
    cell = (
        "class Half(nn.Module):\n    def __init__(self, inner):\n        super().__init__(); self.inner = inner\n"
        "    def forward(self, x):\n        return self.inner[0](x)\n"
        "half = Half(net)\nx = torch.ones(2, 3, device=device)\ny = half(x)\nhalf.to(device);"
    )
    found = odd(notebook, cell)
    assert "inner[2].weight" in found["half"] and "on cpu, the rest on cuda:0" in found["half"]


def test_moved_after_its_first_call(notebook: Notebook) -> None:
    notebook.run(NET)
    found = odd(notebook, "net = Net()\nnet(x.cpu())\nnet.to(device)\nnet(x)\n;")
    assert list(found) == ["net"]


def test_named_as_the_user_calls_it(notebook: Notebook) -> None:
    notebook.run(NET)
    cell = (
        "class Trainer:\n    def __init__(self):\n        self.model = Net().to(device)\n"
        "    def step(self):\n        return self.model(x)\ny = Trainer().step()\n"
        "def build():\n    local = Net().to(device)\n    return local(x)\nz = build()\n"
    )
    assert list(odd(notebook, cell)) == ["self.model", "local"]
    assert notebook.names["report"].mends == ()  # no new cell can speak of them


def test_what_the_run_has_found_is_not_told_twice(notebook: Notebook) -> None:
    notebook.run(NET + "net = Net().to(device)")
    checked = notebook.check("y = net(x, scaled=True)")
    assert [culprit for _, culprit in checked.mistakes] == ["self.scale"]
    assert checked.report.odd == ()


def test_state_of_an_optimizer(notebook: Notebook) -> None:
    notebook.run(
        "net = nn.Linear(3, 3)\nopt = torch.optim.Adam(net.parameters())\nnet(torch.ones(2, 3)).sum().backward()\n"
        "opt.step(); net.to(device)"
    )
    found = odd(notebook, "lr = opt.param_groups[0]['lr']")
    assert "exp_avg" in found["opt"] and "its parameter on cuda:0" in found["opt"]


class TestParallel:
    def test_left_on_another_device(self, notebook: Notebook) -> None:
        notebook.run("net = nn.DataParallel(nn.Linear(3, 2))\nx = torch.ones(4, 3, device=device)")
        checked = notebook.check("y = net(x)")
        (finding,) = checked.report.findings  # torch's own Python refuses it, so no call can be repaired
        assert not finding.repaired and checked.report.error == "RuntimeError"

    def test_replicas_share_plain_tensors(self, notebook: Notebook) -> None:
        notebook.run(NET + "inner = Net()\ninner.to(device).scale = torch.ones(3, device=device)")
        found = odd(notebook, "net = nn.DataParallel(inner)\ny = net(x)")
        assert found == {"net": "module.scale is no buffer: each replica takes it as it is, on cuda:0: register_buffer"}

    def test_one_card_has_no_replicas(self, notebook: Notebook) -> None:
        notebook.run(NET + "inner = Net()\ninner.to(device).scale = torch.ones(3, device=device)")
        assert odd(notebook, "net = nn.DataParallel(inner, device_ids=[0])\ny = net(x)") == {}

    def test_ddp_moved_away(self) -> None:
        """Made on one device and called on another: its buckets stay where it was made."""
        from ipydevice.devicecheck.called import _of_parallel

        with virtual_gpus(2):
            module = torch.nn.parallel.DistributedDataParallel.__new__(torch.nn.parallel.DistributedDataParallel)
            torch.nn.Module.__init__(module)
            module.module = torch.nn.Linear(3, 2)
            module.device, module.device_ids = torch.device("cuda:0"), [0]
            (row,) = _of_parallel("ddp", module)
            assert row.odd == (
                "module.weight and 1 more on cpu, but DistributedDataParallel computes from cuda:0: ddp.to('cuda:0')"
            )
            module.module.to("cuda:0")
            assert list(_of_parallel("ddp", module)) == []


def test_in_a_script() -> None:
    class Net(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.fc = torch.nn.Linear(3, 3)
            self.bias = torch.zeros(3)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.fc(x) + self.bias if x.dim() == 3 else self.fc(x)

    with virtual_gpus(1):
        net, x = Net().to("cuda:0"), torch.ones(2, 3, device="cuda:0")
        with ipydevice.check() as report:
            net(x)
    assert [row.name for row in report.odd] == ["net"]


def test_a_call_is_left_as_it_was() -> None:
    before = torch.nn.Module.__call__
    with ipydevice.check():
        assert torch.nn.Module.__call__ is not before
    assert torch.nn.Module.__call__ is before


def test_modules_made_in_a_loop_are_not_looked_at_for_ever() -> None:
    from ipydevice.devicecheck.called import LOOKS

    before, kept = torch.nn.Module.__call__, []
    with ipydevice.check():
        for _ in range(LOOKS + 1):
            kept.append(torch.nn.Softmax(1))
            kept[-1](torch.ones(1, 2))
        assert torch.nn.Module.__call__ is before


def test_what_wraps_ours_stays_and_works() -> None:
    before = torch.nn.Module.__call__
    try:
        with ipydevice.check():
            ours = torch.nn.Module.__call__
            torch.nn.Module.__call__ = lambda self, *args: ours(self, *args)  # type: ignore[method-assign]
        assert torch.nn.Linear(2, 2)(torch.ones(1, 2)).shape == (1, 2)
    finally:
        torch.nn.Module.__call__ = before  # type: ignore[method-assign]


def test_hooks_fire_once_and_compiled_modules_do_not_warn(recwarn: pytest.WarningsRecorder) -> None:
    fired = []
    net = torch.nn.Linear(2, 2)
    net.register_forward_pre_hook(lambda module, given: fired.append("before"))
    net.register_forward_hook(lambda module, given, result: fired.append("after"))
    with ipydevice.check():
        net(torch.ones(1, 2))
    assert fired == ["before", "after"]
    assert not [warning for warning in recwarn if "hook" in str(warning.message)]
