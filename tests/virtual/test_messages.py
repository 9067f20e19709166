"""What PyTorch says in 82 situations, word for word."""

from __future__ import annotations

import re
import traceback
from pathlib import Path
from typing import Any

import pytest
import torch

from ipydevice.virtual import is_own_frame, trim_traceback
from virtual.situations import SITUATIONS

EXPECTED = dict(
    re.findall(r"^\[(.*)\]\n    (.*)$", (Path(__file__).parent / "situations.txt").read_text("utf-8"), re.M)
)


def outcome(situation: Any, d: str, e: str) -> str:
    try:
        result = situation(d, e)
    except Exception as error:  # noqa: BLE001  (what is raised is the answer)
        return f"{type(error).__name__}: {str(error).splitlines()[0]}"
    return f"no error (result on {result.device})"


def test_every_situation_is_recorded() -> None:
    assert len(SITUATIONS) == 82
    assert set(SITUATIONS) == set(EXPECTED)


@pytest.mark.parametrize("name", SITUATIONS)
def test_words_are_those_of_pytorch(name: str, cards: tuple[str, str]) -> None:
    if not hasattr(torch, "AcceleratorError") and "ordinal" in name:
        pytest.skip("torch before 2.8 raises RuntimeError here")
    assert outcome(SITUATIONS[name], *cards) == EXPECTED[name]


@pytest.mark.parametrize("name", [name for name, text in EXPECTED.items() if not text.startswith("no error")])
def test_no_frame_of_ours_is_left(name: str, cards: tuple[str, str]) -> None:
    with pytest.raises(Exception) as caught:  # noqa: PT011
        SITUATIONS[name](*cards)
    trim_traceback(caught.value)
    frames = traceback.extract_tb(caught.value.__traceback__)
    assert frames
    assert not any(is_own_frame(frame.filename) for frame in frames)
    assert not frames[-1].filename.endswith("torch/_ops.py")


def test_frames_of_ours_go_from_the_middle_too(cards: tuple[str, str]) -> None:
    class Users(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
            return x + torch.ones(3)

    with pytest.raises(RuntimeError) as caught:
        Users.apply(torch.ones(3, device="cuda"))
    whole = [frame.filename for frame in traceback.extract_tb(caught.value.__traceback__)]
    trim_traceback(caught.value)
    frames = traceback.extract_tb(caught.value.__traceback__)
    assert sum(map(is_own_frame, whole)) >= 2
    assert not any(is_own_frame(frame.filename) for frame in frames)
    assert [frame.name for frame in frames][-1] == "forward"


def test_errors_of_shape_look_as_ever(cards: tuple[str, str]) -> None:
    with pytest.raises(RuntimeError, match="shapes cannot be multiplied") as caught:
        torch.nn.Linear(3, 2).cuda()(torch.ones(2, 4, device="cuda"))
    trim_traceback(caught.value)
    assert traceback.extract_tb(caught.value.__traceback__)[-1].filename.endswith("linear.py")
