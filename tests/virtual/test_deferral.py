"""Replaced entry points let tensor subclasses and torch function modes go first, as PyTorch's own do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch.overrides import TorchFunctionMode


class Watch(TorchFunctionMode):
    def __init__(self) -> None:
        super().__init__()
        self.seen: list[str] = []

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.seen.append(getattr(func, "__name__", str(func)))
        return func(*args, **(kwargs or {}))


class Logged(torch.Tensor):
    seen: ClassVar[list[str]] = []

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        cls.seen.append(getattr(func, "__name__", str(func)))
        return super().__torch_function__(func, types, args, kwargs or {})


def lstm(d: str) -> Any:
    layer = torch.nn.LSTM(2, 3).to(d)
    return lambda: layer(torch.ones(4, 1, 2, device=d))


def attention(d: str) -> Any:
    x = torch.ones(1, 1, 3, 4, device=d)
    return lambda: F.scaled_dot_product_attention(x, x, x)


def keyword_attention(d: str) -> Any:
    x = torch.ones(1, 1, 3, 4, device=d)
    return lambda: F.scaled_dot_product_attention(query=x, key=x, value=x)


CALLS: dict[str, tuple[str, Callable[[str], Any]]] = {
    "lstm": ("lstm", lstm),
    "sdpa": ("scaled_dot_product_attention", attention),
    "sdpa by keyword": ("scaled_dot_product_attention", keyword_attention),
    "to": ("to", lambda d: (lambda x: lambda: x.to("cpu"))(torch.ones(2, device=d))),
    "cuda": ("cuda", lambda d: (lambda x: lambda: x.cuda())(torch.ones(2))),
    "cpu": ("cpu", lambda d: (lambda x: lambda: x.cpu())(torch.ones(2, device=d))),
    "numpy": ("numpy", lambda d: (lambda x: lambda: x.numpy())(torch.ones(2))),
    "zeros": ("zeros", lambda d: lambda: torch.zeros(2, device=d)),
    "randn with generator": ("randn", lambda d: lambda: torch.randn(2, generator=torch.Generator(d), device=d)),
    "type": ("type", lambda d: (lambda x: lambda: x.type(torch.float64))(torch.ones(2, device=d))),
    "new_zeros": ("new_zeros", lambda d: (lambda x: lambda: x.new_zeros(2))(torch.ones(2, device=d))),
    "device": ("__get__", lambda d: (lambda x: lambda: x.device)(torch.ones(2, device=d))),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_mode_sees_the_call_first(name: str, cards: Any) -> None:
    expected, make = CALLS[name]
    call = make(cards[0])
    with Watch() as watch:
        call()
    assert expected in watch.seen


@pytest.mark.parametrize("name", CALLS)
def test_a_mode_sees_what_it_sees_without_cards(name: str) -> None:
    """Nothing of ours shows up in between, on host tensors."""
    from ipydevice.virtual import virtual_gpus

    def seen() -> list[str]:
        call = CALLS[name][1]("cpu") if name != "cuda" else CALLS["cpu"][1]("cpu")
        with Watch() as watch:
            call()
        return watch.seen

    plain = seen()
    with virtual_gpus(1):
        assert seen() == plain


def test_the_function_that_a_mode_gets_is_the_one_in_torch(cards: Any) -> None:
    got: list[Any] = []

    class Keep(TorchFunctionMode):
        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            got.append(func)
            return func(*args, **(kwargs or {}))

    with Keep():
        torch.zeros(2, device="cuda").to("cpu")
    assert got == [torch.zeros, torch.Tensor.to]


def test_entry_points_keep_their_names(cards: Any) -> None:
    functions = (torch.Tensor.to, torch.zeros, torch.lstm, F.scaled_dot_product_attention, torch.Tensor.numpy)
    assert [torch.overrides.resolve_name(function) for function in functions] == [
        "torch.Tensor.to",
        "torch.zeros",
        "torch.lstm",
        "torch.nn.functional.scaled_dot_product_attention",
        "torch.Tensor.numpy",
    ]


def test_a_mode_can_repair_a_call(cards: Any) -> None:
    class Repair(TorchFunctionMode):
        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            try:
                return func(*args, **(kwargs or {}))
            except (RuntimeError, TypeError):
                return func(*[a.cpu() if isinstance(a, torch.Tensor) else a for a in args], **(kwargs or {}))

    x, y = torch.ones(2, 2, device="cuda"), torch.ones(2, 2)
    with Repair():
        assert (x @ y).device.type == "cpu"
        assert x.numpy().shape == (2, 2)
        assert F.mse_loss(x, y) == 0


def test_subclasses_go_first(cards: Any) -> None:
    x = torch.ones(2, device="cuda").as_subclass(Logged)
    Logged.seen.clear()
    assert str(x.device) == "cuda:0"
    assert x.is_cuda
    y = x.to("cuda:1")
    assert type(y) is Logged
    assert str(y.device) == "cuda:1"
    with pytest.raises(TypeError, match="convert cuda:0"):
        x.numpy()
    assert {"__get__", "to", "numpy"} <= set(Logged.seen)


def test_subclass_metadata_can_be_read_quietly(cards: Any) -> None:
    x = torch.ones(2, device="cuda").as_subclass(Logged)
    Logged.seen.clear()
    with torch._C.DisableTorchFunctionSubclass():
        assert str(torch.Tensor.device.__get__(x)) == "cuda:0"
    assert Logged.seen == []


def test_numpy_reads_through_the_same_door(cards: Any) -> None:
    with pytest.raises(TypeError, match="convert cuda:0"):
        np.asarray(torch.ones(2, device="cuda"))
    assert np.asarray(torch.ones(2)).sum() == 2
    assert torch.ones(2, device="cuda").numpy(force=True).sum() == 2
