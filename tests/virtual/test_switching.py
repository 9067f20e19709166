"""On, off, nested, broken off: PyTorch is restored to the letter."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from ipydevice.virtual import enabled, session, virtual_gpus


def owners() -> list[Any]:
    found: list[Any] = [
        *(
            torch,
            torch.random,
            torch.cuda,
            torch.cuda.random,
            torch.Tensor,
            torch._C,
            torch._VF,
            torch.UntypedStorage,
            torch.jit,
        ),
        *(torch.nn.functional, torch.fft, torch.nested, torch.autograd, torch.autograd.Function, torch.autocast),
        *(torch.nn.parallel.comm, torch.nn.parallel._functions.Scatter, torch.backends.cudnn, torch.utils.dlpack),
        *(
            torch.accelerator,
            torch.distributed,
            torch.nn.parameter.UninitializedTensorMixin,
            torch._utils.ExceptionWrapper,
        ),
        *(torch.cuda.memory, torch.cuda.nvtx, torch.autograd.profiler.profile, torch.utils.data.dataset),
        *(threading.Thread, torch.serialization, torch.optim.Optimizer, torch.nn.Module, torch._C._nn),
        torch.jit._script.RecursiveScriptModule,
    ]
    loaded = ("torch.export", "torch._dynamo.eval_frame")  # only when something has asked for them
    return found + [sys.modules[name] for name in loaded if name in sys.modules]


def attributes() -> dict[tuple[str, str], Any]:
    return {
        (repr(owner), name): value
        for owner in owners()
        for name, value in vars(owner).items()
        if name != "__warningregistry__"
    }


def modes() -> int:
    return torch._C._len_torch_dispatch_stack()


@pytest.fixture
def unchanged() -> Iterator[None]:
    """Every attribute of every owner is the same object afterwards, and nothing is added."""
    before, stack = attributes(), modes()
    yield
    after = attributes()
    assert {key: id(value) for key, value in after.items()} == {key: id(value) for key, value in before.items()}
    assert modes() == stack
    assert enabled() == 0
    assert not torch.cuda.is_available()


def test_the_owners_are_all_that_is_patched() -> None:
    with virtual_gpus(1):
        patched = session.patched()
    assert len(patched) > 150
    assert {repr(owner) for owner, _ in patched} <= {repr(owner) for owner in owners()}


@pytest.mark.usefixtures("unchanged")
class TestRestores:
    def test_after_a_with(self) -> None:
        with virtual_gpus(2):
            torch.ones(2, device="cuda") + 1

    def test_after_enable_and_disable(self) -> None:
        gpus = virtual_gpus(3).enable()
        assert enabled() == torch.cuda.device_count() == 3
        gpus.disable()

    def test_after_an_exception(self) -> None:
        with pytest.raises(ZeroDivisionError), virtual_gpus(2):
            _ = 1 / 0

    def test_after_a_device_error(self) -> None:
        with pytest.raises(RuntimeError, match="same device"), virtual_gpus(2):
            torch.ones(2, device="cuda") + torch.ones(2)

    def test_after_saving_scripts_and_threads(self) -> None:
        with virtual_gpus(2):
            torch.jit.script(_scripted)(torch.ones(2, device="cuda"))
            thread = threading.Thread(target=lambda: torch.ones(1, device="cuda") * 2)
            thread.start()
            thread.join()
        torch.jit.script(_scripted)(torch.ones(2))

    def test_with_other_modes_entered_later(self) -> None:
        gpus = virtual_gpus(1).enable()
        with _Count() as counter:
            torch.ones(2, device="cuda") * 2
            gpus.disable()
            torch.ones(2, 2) @ torch.ones(2, 2)
        assert {"aten::mul", "aten::mm"} <= set(counter.seen)

    def test_a_default_device_that_is_gone(self) -> None:
        with virtual_gpus(1):
            torch.set_default_device("cuda")
        assert torch.ones(2).device.type == "cpu"
        torch.set_default_device("meta")
        with virtual_gpus(1):
            assert torch.ones(2).is_meta
        assert torch.ones(2).is_meta
        torch.set_default_device(None)

    def test_nested(self) -> None:
        with virtual_gpus(2):
            x = torch.ones(2, device="cuda:1")
            with virtual_gpus(4):
                assert enabled() == 4
                y = torch.ones(2, device="cuda:3")
            assert enabled() == 2
            assert str((x + 1).device) == "cuda:1"
            with pytest.raises(Exception, match="invalid device ordinal"):
                torch.ones(2, device="cuda:3")
            assert str(y.device) == "cuda:3"

    def test_live_tensors_become_what_they_are(self) -> None:
        with virtual_gpus(1):
            x = torch.ones(3, device="cuda", requires_grad=True)
            layer = torch.nn.Linear(3, 1).cuda()
            out = layer(x)
        assert x.device.type == layer.weight.device.type == "cpu"
        (out + torch.ones(1)).sum().backward()
        assert x.grad is not None
        assert x.numpy(force=True).sum() == 3

    def test_names_taken_while_on_keep_working(self) -> None:
        with virtual_gpus(1):
            from torch import randn, zeros

            move = torch.Tensor.to
        assert zeros(2).device.type == "cpu"
        assert randn(2, generator=torch.Generator()).shape == (2,)
        assert move(torch.ones(2), torch.float64).dtype is torch.float64
        with pytest.raises((AssertionError, RuntimeError)):
            zeros(2, device="cuda")


class _Count(TorchDispatchMode):
    def __init__(self) -> None:
        super().__init__()
        self.seen: list[str] = []

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False  # the default imports torch._dynamo, which changes torch.manual_seed for good

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.seen.append(func._schema.name)
        return func(*args, **(kwargs or {}))


def _scripted(x: torch.Tensor) -> torch.Tensor:
    return x * 2 + torch.zeros_like(x)


@pytest.mark.parametrize("n", [0, -1, 1.5, "2", True, None])
def test_bad_numbers_are_refused(n: Any) -> None:
    with pytest.raises(ValueError, match="number of cards"):
        virtual_gpus(n)


def test_disable_needs_enable() -> None:
    with pytest.raises(RuntimeError, match="enable"):
        virtual_gpus(1).disable()


def run_fresh(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_import_leaves_torch_alone() -> None:
    assert run_fresh("import sys, ipydevice.virtual as v; print(v.enabled(), 'torch' in sys.modules)") == "0 False\n"


def test_enabling_does_not_import_dynamo() -> None:
    code = """
import sys
from ipydevice.virtual import virtual_gpus
with virtual_gpus(2):
    import torch
    m = torch.nn.Linear(2, 2).cuda()
    m(torch.ones(1, 2, device="cuda")).sum().backward()
    try: m(torch.ones(1, 2))
    except RuntimeError: pass
print("torch._dynamo" in sys.modules)
"""
    assert run_fresh(code) == "False\n"
