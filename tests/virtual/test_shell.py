"""What a person sees in IPython: the traceback of a CUDA build, and `%debug` in their own frame."""

from __future__ import annotations

import sys
from typing import Any

import pytest

FAILING = """
import torch
from torch import nn
layer = nn.Linear(3, 2).to("cuda:1")
layer(torch.ones(1, 3))
"""


@pytest.fixture
def loaded(shell: Any, cards: Any) -> Any:
    shell.run("%load_ext ipydevice")
    return shell


def test_the_traceback_ends_in_pytorch(loaded: Any) -> None:
    run = loaded.run(FAILING)
    assert "mat1 is on cpu, different from other tensors on cuda:1" in run.text
    assert "F.linear(input, self.weight, self.bias)" in run.text
    assert "ipydevice/virtual" not in run.text
    assert "__torch_dispatch__" not in run.text


def test_debug_starts_where_cuda_would_have_failed(loaded: Any) -> None:
    loaded.run(FAILING)
    last = sys.last_traceback
    while last.tb_next is not None:
        last = last.tb_next
    assert last.tb_frame.f_code.co_filename.endswith("linear.py")


def test_cards_stay_on_from_cell_to_cell(shell: Any) -> None:
    shell.run("from ipydevice.virtual import virtual_gpus; gpus = virtual_gpus(2).enable(); import torch")
    shell.run("x = torch.ones(2, device='cuda:1')")
    assert shell.run("print(x.device, torch.cuda.device_count())").text == "cuda:1 2\n"
    shell.run("gpus.disable()")
    assert shell.run("print(x.device, torch.cuda.is_available())").text == "cpu False\n"
