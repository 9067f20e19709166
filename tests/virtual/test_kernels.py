"""Operators whose check depends on the kernel that the input selects, and operators that check in words of their own.

Which kernel: ``ConvParams`` in PyTorch's native/Convolution.cpp. Wrapper names: torchgen's of 2.0 to 2.13.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import nn

CUDA, OTHER, CPU = "cuda:0", "cuda:1", "cpu"


def got(argument: str, device: str, expected: str, method: str) -> str:
    return f"got {argument} is on {device}, different from other tensors on {expected} .*wrapper_CUDA_{method}\\)"


TYPES = r"Input type \(torch.cuda.FloatTensor\) and weight type \(torch.FloatTensor\) should be the same$"
ONEDNN = r"Input type \(torch.FloatTensor\) and weight type \(torch.cuda.FloatTensor\) .* MKLDNN tensor and weight"


def image(batch: int, *size: int, device: str, **options: Any) -> torch.Tensor:
    return torch.ones(batch, 3, *size, device=device, **options)


CONVOLUTIONS: dict[str, tuple[Callable[[], Any], str]] = {
    "host, one small image": (
        lambda: nn.Conv2d(3, 6, 3).to(CUDA)(image(1, 8, 8, device=CPU)),
        got("weight", CUDA, CPU, "__slow_conv2d_forward"),
    ),
    "host, a batch": (lambda: nn.Conv2d(3, 6, 3).to(CUDA)(image(2, 8, 8, device=CPU)), ONEDNN),
    "host, groups": (lambda: nn.Conv2d(3, 6, 3, groups=3).to(CUDA)(image(1, 8, 8, device=CPU)), ONEDNN),
    "host, one short signal": (
        lambda: nn.Conv1d(3, 6, 3).to(CUDA)(image(1, 8, device=CPU)),
        got("weight", CUDA, CPU, "__slow_conv2d_forward"),
    ),
    "host, dilated": (
        lambda: nn.Conv2d(3, 6, 3, dilation=2).to(CUDA)(image(1, 8, 8, device=CPU)),
        got("weight", CUDA, CPU, "_slow_conv_dilated2d"),
    ),
    "host, transposed": (
        lambda: nn.ConvTranspose2d(3, 6, 3).to(CUDA)(image(1, 8, 8, device=CPU)),
        got("weight", CUDA, CPU, "slow_conv_transpose2d"),
    ),
    "host, double": (
        lambda: nn.Conv2d(3, 6, 3).double().to(CUDA)(image(2, 8, 8, device=CPU, dtype=torch.float64)),
        got("weight", CUDA, CPU, "__slow_conv2d_forward"),
    ),
    "host, one small volume": (
        lambda: nn.Conv3d(3, 6, 3).to(CUDA)(image(1, 8, 8, 8, device=CPU)),
        r"Could not run 'aten::slow_conv3d_forward' with arguments from the 'CUDA' backend\. This could be",
    ),
    "card": (lambda: nn.Conv2d(3, 6, 3)(image(1, 8, 8, device=CUDA)), TYPES),
    "card, bias": (
        lambda: F.conv2d(image(1, 8, 8, device=CUDA), torch.ones(6, 3, 3, 3, device=CUDA), torch.ones(6)),
        r"Input type \(torch.cuda.FloatTensor\) and bias type \(torch.FloatTensor\) should be the same$",
    ),
    "card, depthwise": (
        lambda: nn.Conv2d(3, 6, 3, groups=3)(image(1, 8, 8, device=CUDA)),
        got("weight", CPU, CUDA, "__conv_depthwise2d"),
    ),
    "card, depthwise, no batch": (
        lambda: nn.Conv2d(3, 6, 3, groups=3)(image(3, 8, device=CUDA)),
        got("weight", CPU, CUDA, "__conv_depthwise2d"),
    ),
    "card, depthwise signal": (
        lambda: nn.Conv1d(3, 3, 3, groups=3)(image(2, 8, device=CUDA)),
        got("weight", CPU, CUDA, "__conv_depthwise2d"),
    ),
    "card, depthwise volume": (
        lambda: nn.Conv3d(3, 6, 3, groups=3)(image(1, 8, 8, 8, device=CUDA)),
        got("weight", CPU, CUDA, "_conv_depthwise3d"),
    ),
    "card, depthwise, another card": (
        lambda: nn.Conv2d(3, 6, 3, groups=3).to(OTHER)(image(1, 8, 8, device=CUDA)),
        got("weight", OTHER, CUDA, "__conv_depthwise2d"),
    ),
    "card, depthwise bias": (
        lambda: F.conv2d(image(1, 8, 8, device=CUDA), torch.ones(6, 1, 3, 3, device=CUDA), torch.ones(6), groups=3),
        got("bias", CPU, CUDA, "__conv_depthwise2d"),
    ),
    "card, depthwise channels last is cuDNN's": (
        lambda: nn.Conv2d(3, 6, 3, groups=3)(image(1, 8, 8, device=CUDA).to(memory_format=torch.channels_last)),
        TYPES,
    ),
    "card, another card": (
        lambda: nn.Conv2d(3, 6, 3).to(OTHER)(image(1, 8, 8, device=CUDA)),
        got("weight", OTHER, CUDA, "_cudnn_convolution"),
    ),
}


@pytest.mark.parametrize("name", CONVOLUTIONS)
def test_words_of_a_convolution(name: str, cards: Any) -> None:
    call, words = CONVOLUTIONS[name]
    with pytest.raises((RuntimeError, NotImplementedError), match=words):
        call()


@pytest.mark.parametrize("groups", [1, 3])
def test_convolutions_in_place_run(groups: int, cards: Any) -> None:
    torch.manual_seed(0)
    layer = nn.Conv2d(3, 6, 3, groups=groups)
    expected = layer(image(2, 8, 8, device=CPU))
    assert torch.equal(layer.to(OTHER)(image(2, 8, 8, device=OTHER)).cpu(), expected)


def on_card(*shape: int) -> torch.Tensor:
    return torch.ones(*shape, device=CUDA)


OPERATORS: dict[str, tuple[Callable[[], Any], str]] = {
    "masked_scatter, mask": (
        lambda: on_card(3).masked_scatter(torch.ones(3) > 0, on_card(3)),
        got("mask", CPU, CUDA, "_masked_scatter_"),
    ),
    "lstsq": (
        lambda: torch.linalg.lstsq(on_card(3, 2), torch.ones(3, 2)),
        got("b", CPU, CUDA, "out_linalg_lstsq_out"),
    ),
    "bilinear, weight": (lambda: nn.Bilinear(3, 3, 2)(on_card(2, 3), on_card(2, 3)), got("mat2", CPU, CUDA, "bmm")),
    "bilinear, second input": (
        lambda: nn.Bilinear(3, 3, 2).to(CUDA)(on_card(2, 3), torch.ones(2, 3)),
        got("mat2", CPU, CUDA, "bmm"),
    ),
    "cholesky_solve": (
        lambda: torch.cholesky_solve(torch.ones(2, 2), on_card(2, 2)),
        "Expected b and A to be on the same device, but found b on cpu and A on cuda:0 instead",
    ),
    "gradient": (
        lambda: torch.gradient(on_card(3), spacing=(torch.arange(3.0),)),
        "torch.gradient expected each tensor to be on the same device, but got devices cuda:0 and cpu!",
    ),
    "sparse indices": (
        lambda: torch.sparse_coo_tensor(torch.zeros(2, 1, dtype=torch.long), on_card(1), (2, 2)),
        r"backend of indices \(CPU\) must match backend of values \(CUDA\)",
    ),
    "sparse, two cards": (
        lambda: torch.sparse_coo_tensor(torch.zeros(2, 1, dtype=torch.long, device=OTHER), on_card(1), (2, 2)),
        r"device of indices \(1\) must match device of values \(0\)",
    ),
    "histogram": (lambda: on_card(3).histogram(2), "Could not run 'aten::histogram.bin_ct' with .* 'CUDA' backend"),
    "histogram, edges": (
        lambda: torch.histogram(torch.ones(3), on_card(3)),
        "Could not run 'aten::histogram.bins_tensor' with .* 'CUDA' backend",
    ),
    "histogramdd": (
        lambda: torch.histogramdd(on_card(3, 2), [2, 2]),
        "Could not run 'aten::_histogramdd_bin_edges' with .* 'CUDA' backend",
    ),
}


@pytest.mark.parametrize("name", OPERATORS)
def test_words_of_an_operator(name: str, cards: Any) -> None:
    call, words = OPERATORS[name]
    with pytest.raises((RuntimeError, NotImplementedError), match=words):
        call()


COPIES: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "select_scatter": lambda x: torch.select_scatter(x, torch.zeros(2), 0, 0),
    "slice_scatter": lambda x: torch.slice_scatter(x, torch.zeros(1, 2), 0, 0, 1),
    "diagonal_scatter": lambda x: torch.diagonal_scatter(x, torch.zeros(2)),
    "as_strided_scatter": lambda x: torch.as_strided_scatter(x, torch.zeros(1), (1,), (1,)),
    "pad_sequence": lambda x: nn.utils.rnn.pad_sequence([x[0], torch.zeros(3)]),
}


@pytest.mark.parametrize("name", COPIES)
def test_a_copy_comes_from_anywhere(name: str, cards: Any) -> None:
    result = COPIES[name](on_card(2, 2))
    assert str(result.device) == CUDA
    assert torch.equal(result.cpu(), COPIES[name](torch.ones(2, 2)))


def setters() -> dict[str, Callable[[torch.Tensor], Any]]:
    return {
        "torch": torch.set_rng_state,
        "torch.random": torch.random.set_rng_state,
        "torch.cuda": torch.cuda.set_rng_state,
        "of all cards": lambda state: torch.cuda.set_rng_state_all([state, state]),
        "generator": torch.Generator(CUDA).set_state,
    }


@pytest.mark.parametrize("name", ["torch", "torch.random", "torch.cuda", "of all cards", "generator"])
def test_a_random_state_stays_on_the_host(name: str, cards: Any) -> None:
    setter, state = setters()[name], torch.get_rng_state()
    with pytest.raises(TypeError, match="^RNG state must be a torch.ByteTensor$"):
        setter(state.to(CUDA))
    setter(state.to(CUDA).cpu())
