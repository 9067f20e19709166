"""Every group of operations gives, on a card, the numbers of a plain CPU run, and leaves them on that card."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from virtual.operations import OPERATIONS


def run(name: str, d: str, e: str) -> list[torch.Tensor]:
    torch.manual_seed(0)
    return list(OPERATIONS[name](d, e))


# PyTorch's own advice, at the line that happens to call it
@pytest.mark.filterwarnings("ignore:Sparse invariant checks")
@pytest.mark.parametrize("name", OPERATIONS)
def test_numbers_are_those_of_a_plain_cpu(name: str, cards: Any) -> None:
    from ipydevice.virtual import virtual_gpus

    found = run(name, *cards)
    places = [tensor.device for tensor in found]
    values = [tensor.detach().cpu() for tensor in found]
    assert {str(place) for place in places} == {"cuda:0"}
    del found
    with virtual_gpus(2):  # the second card by itself as well
        second = [tensor.detach().cpu() for tensor in run(name, "cuda:1", "cuda:0")]
    expected = run(name, "cpu", "cpu")
    assert len(values) == len(expected)
    for position, (value, other, plain) in enumerate(zip(values, second, expected, strict=True)):
        assert torch.equal(torch.nan_to_num(value), torch.nan_to_num(plain.detach())), position
        assert torch.equal(torch.nan_to_num(other), torch.nan_to_num(plain.detach())), position
