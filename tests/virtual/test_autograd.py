"""Gradients that arrive on the wrong device are refused where the engine of a CUDA build refuses them."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn


class Careless(torch.autograd.Function):
    """Gives the gradient of its second input where the first one is."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        ctx.save_for_backward(x, y)
        return x * y.to(x.device)

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> Any:
        x, y = ctx.saved_tensors
        return grad * y.to(x.device), grad * x


def test_each_input_of_a_function_is_checked(cards: Any) -> None:
    x = torch.ones(3, device="cuda:0", requires_grad=True)
    y = torch.ones(3, device="cuda:1", requires_grad=True)
    with pytest.raises(
        RuntimeError,
        match="Function CarelessBackward returned an invalid gradient at index 1 - expected device cuda:1 but got cuda",
    ):
        Careless.apply(x, y).sum().backward()
    assert x.grad is None


def test_a_function_with_setup_context_is_checked(cards: Any) -> None:
    class Home(torch.autograd.Function):
        @staticmethod
        def forward(x: torch.Tensor) -> torch.Tensor:
            return x * 2

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None: ...

        @staticmethod
        def backward(ctx: Any, grad: torch.Tensor) -> torch.Tensor:
            return grad.cpu()

    with pytest.raises(RuntimeError, match="Function HomeBackward returned an invalid gradient at index 0"):
        Home.apply(torch.ones(3, device="cuda", requires_grad=True)).sum().backward()


def test_scalar_gradients_are_moved_silently(cards: Any) -> None:
    class Scalar(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
            return x * 2

        @staticmethod
        def backward(ctx: Any, grad: torch.Tensor) -> torch.Tensor:
            return grad.cpu()

    x = torch.ones((), device="cuda", requires_grad=True)
    Scalar.apply(x).backward()
    assert x.grad is not None
    assert str(x.grad.device) == "cuda:0"


def test_given_gradients(cards: Any) -> None:
    x = torch.ones(3, device="cuda", requires_grad=True)
    with pytest.raises(RuntimeError, match=r"^invalid gradient at index 0 - expected device cuda:0 but got cpu$"):
        torch.autograd.grad(x * 2, x, torch.ones(3))
    with pytest.raises(RuntimeError, match=r"^invalid gradient at index 1 - expected device cuda:0 but got cuda:1$"):
        torch.autograd.backward([x * 2, x * 3], [torch.ones(3, device="cuda"), torch.ones(3, device="cuda:1")])


def test_hooks_may_not_move_a_gradient(cards: Any) -> None:
    x = torch.ones(3, device="cuda", requires_grad=True)

    def home(grad: torch.Tensor) -> torch.Tensor:
        return grad.cpu()

    handle = x.register_hook(home)
    with pytest.raises(
        RuntimeError,
        match=r"hook 'home' has changed the type of value \(was torch.cuda.FloatTensor got torch.FloatTensor\)",
    ):
        (x * 2).sum().backward()
    handle.remove()
    (x * 2).sum().backward()


def test_assigning_grad(cards: Any) -> None:
    x = torch.ones(3, device="cuda:1", requires_grad=True)
    with pytest.raises(RuntimeError, match=r"^attempting to assign a gradient located on device with index '$"):
        x.grad = torch.ones(3, device="cuda:0")
    x.grad = torch.ones(3, device="cuda:1")
    x.grad = None
    assert x.grad is None
    del x.grad


def test_gradients_of_copies_go_home(cards: Any) -> None:
    x = torch.ones(3, requires_grad=True)
    y = x.to("cuda:0")
    assert type(y.grad_fn).__name__ == "ToCopyBackward0"
    places: list[torch.device] = []
    y.register_hook(lambda grad: places.append(grad.device))
    (y.to("cuda:1") * 2).sum().backward()
    assert x.grad is not None
    assert x.grad.device.type == "cpu"
    assert [str(place) for place in places] == ["cuda:0"]


def test_an_error_in_a_hook_is_the_users(cards: Any) -> None:
    layer = nn.Linear(3, 1).cuda()
    keep = torch.ones(1, 3)
    layer.weight.register_hook(lambda grad: grad * keep)
    with pytest.raises(RuntimeError, match="cuda:0 and cpu"):
        layer(torch.ones(2, 3, device="cuda")).sum().backward()


def test_saved_tensors_keep_their_device(cards: Any) -> None:
    seen: list[str] = []

    def pack(t: torch.Tensor) -> torch.Tensor:
        seen.append(str(t.device))
        return t.cpu()

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda t: t.to("cuda:0")):
        x = torch.ones(3, device="cuda", requires_grad=True)
        y = x.exp()
    y.sum().backward()
    assert set(seen) == {"cuda:0"}
    with torch.autograd.graph.save_on_cpu():
        z = (x * x).sum()
    z.backward()
    assert str(x.grad.device) == "cuda:0"


class TestAfterAFailedStep:
    """The state is what a CUDA build leaves: PyTorch's own optimizers run, on lists by default."""

    def _failing(self, **options: Any) -> tuple[nn.Linear, torch.optim.Adam]:
        model = nn.Linear(3, 2).cuda()
        optimizer = torch.optim.Adam(model.parameters(), **options)
        for _ in range(2):
            optimizer.zero_grad()
            model(torch.ones(1, 3, device="cuda")).sum().backward()
            optimizer.step()
        optimizer.state[model.bias]["exp_avg"] = optimizer.state[model.bias]["exp_avg"].cpu()
        return model, optimizer

    def test_one_tensor_at_a_time(self, cards: Any) -> None:
        model, optimizer = self._failing(foreach=False)
        before = [p.detach().clone() for p in model.parameters()]
        with pytest.raises(RuntimeError, match="cuda:0 and cpu"):
            optimizer.step()
        assert [float(optimizer.state[p]["step"]) for p in model.parameters()] == [3.0, 3.0]
        assert not torch.equal(before[0], model.weight)  # updated before the failure
        assert torch.equal(before[1], model.bias)

    def test_lists(self, cards: Any) -> None:
        """adam.py counts all steps of a card, then averages position by position (ForeachOpsKernels.cpp)."""
        model, optimizer = self._failing()
        before = [p.detach().clone() for p in model.parameters()]
        averages = [optimizer.state[p]["exp_avg"].clone() for p in model.parameters()]
        with pytest.raises(RuntimeError, match="cuda:0 and cpu"):
            optimizer.step()
        assert torch.equal(before[0], model.weight)
        assert torch.equal(before[1], model.bias)
        assert [float(optimizer.state[p]["step"]) for p in model.parameters()] == [3.0, 3.0]
        assert not torch.equal(averages[0], optimizer.state[model.weight]["exp_avg"])
        assert torch.equal(averages[1], optimizer.state[model.bias]["exp_avg"])

    def test_state_on_another_card_is_refused_before_anything(self, cards: Any) -> None:
        model, optimizer = self._failing()
        optimizer.state[model.bias]["exp_avg"] = optimizer.state[model.bias]["exp_avg"].to("cuda:1")
        with pytest.raises(RuntimeError, match="Tensors of the same index must be on the same device"):
            optimizer.step()
        assert [float(optimizer.state[p]["step"]) for p in model.parameters()] == [2.0, 2.0]
