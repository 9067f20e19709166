"""Tensors inside tensors: wrapper subclasses, nested tensors, fake tensors, the wrappers of torch.func."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.fx


class Boxed(torch.Tensor):
    """A wrapper that holds a tensor and runs every operator on it."""

    inner: torch.Tensor

    @staticmethod
    def __new__(cls, inner: torch.Tensor) -> Boxed:
        made = torch.Tensor._make_wrapper_subclass(cls, inner.shape, dtype=inner.dtype, device=inner.device)
        made.inner = inner
        return made  # type: ignore[no-any-return]

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return cls(func(*[a.inner if isinstance(a, cls) else a for a in args], **(kwargs or {})))


def test_a_wrapper_is_where_its_inside_is(cards: Any) -> None:
    x = Boxed(torch.ones(3, device="cuda:1"))
    assert str(x.device) == "cuda:1"
    assert str((x * 2).inner.device) == "cuda:1"
    with pytest.raises(RuntimeError, match="cuda:1 and cpu"):
        x + torch.ones(3)


def test_backward_through_a_wrapper(cards: Any) -> None:
    """With a C++ device of cuda this would end the process."""
    x = Boxed(torch.ones(3, device="cuda")).requires_grad_()
    (x * 2).sum().backward()
    assert x.grad is not None
    assert x.grad.inner.device.type == "cuda"


def test_plain_subclasses(cards: Any) -> None:
    class Named(torch.Tensor):
        pass

    x = torch.ones(2, device="cuda").as_subclass(Named)
    assert type(x * 2) is Named
    assert (x * 2).is_cuda
    with pytest.raises(RuntimeError, match="cuda:0 and cpu"):
        x + torch.ones(2)


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
@pytest.mark.parametrize("layout", [torch.jagged, torch.strided])
def test_nested_tensors(cards: Any, layout: Any) -> None:
    x = torch.nested.nested_tensor([torch.ones(2, 3), torch.ones(4, 3)], layout=layout, device="cuda:1")
    assert str(x.device) == str((x * 2).device) == str(x.unbind()[0].device) == "cuda:1"
    assert str(torch.nested.to_padded_tensor(x * 2, 0.0).device) == "cuda:1"


def test_fake_tensors_are_left_alone(cards: Any) -> None:
    from torch._subclasses.fake_tensor import FakeTensorMode

    with FakeTensorMode():
        x = torch.ones(2, 2)
        assert (x @ x).shape == (2, 2)


def test_the_wrappers_of_vmap_say_where_they_are(cards: Any) -> None:
    seen = []

    def f(row: torch.Tensor) -> torch.Tensor:
        seen.append((str(row.device), row.is_cuda, row.get_device()))
        return row.to("cuda:0") + row.new_zeros(2).to("cuda:0")

    out = torch.vmap(f)(torch.ones(3, 2, device="cuda:1"))
    assert seen == [("cuda:1", True, 1)]
    assert str(out.device) == "cuda:0"
    with pytest.raises(RuntimeError, match="cuda:1 and cpu"):
        torch.vmap(lambda row: row * torch.ones(2))(torch.ones(3, 2, device="cuda:1"))


def test_transforms_across_cards(cards: Any) -> None:
    x, y = torch.ones(3, device="cuda:0"), torch.ones(3, device="cuda:1")
    assert str(torch.func.grad(lambda w: (w.to("cuda:1") * y).sum())(x).device) == "cuda:0"
    assert str(torch.func.jacrev(lambda w: w.to("cuda:1") * 2)(x).device) == "cuda:0"


def test_gradients_of_subclasses_are_plain(cards: Any) -> None:
    class Named(torch.Tensor):
        pass

    x = torch.ones(2, device="cuda").as_subclass(Named).requires_grad_()
    (x * 2).sum().backward()
    assert type(x.grad) is torch.Tensor
    assert torch.Tensor.grad.__get__ in torch.overrides.get_default_nowrap_functions()
    assert x.grad is x.grad


def test_inference_mode(cards: Any) -> None:
    with torch.inference_mode():
        x = torch.ones(2, device="cuda") * 2
        assert x.is_cuda
        with pytest.raises(RuntimeError, match="cuda:0 and cpu"):
            x + torch.ones(2)
    assert x.cpu().device.type == "cpu"


class Recorded(torch.nn.Module):
    """Reads devices and sizes of its input, which are proxies while torch.fx records it."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(3, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        places = torch.arange(x.shape[1], device=x.device)
        return self.linear(x) + places + self.linear.weight.to(x.device).sum()


def test_proxies_of_a_recorded_graph(cards: Any) -> None:
    net = Recorded()
    graph = torch.fx.symbolic_trace(net).to("cuda:1")
    x = torch.ones(2, 3)
    assert torch.equal(graph(x.to("cuda:1")).cpu(), net.cpu()(x))
