"""Virtual cards and real ones say the same, wherever there are real ones."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import torch

sys.path.insert(0, str(Path(__file__).parent))
import compare


@pytest.mark.cuda
@pytest.mark.slow
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device: not verified against real cards")
def test_nothing_differs() -> None:
    rows = compare.compare()
    assert [row for row in rows if row.verdict == "differs"] == []


def test_a_difference_is_seen() -> None:
    """The judge itself, on answers made up for it."""
    place = ["cuda:0", "torch.float32", [2]]
    assert compare.judge("operation", "x", [[*place, [1.0, 2.0]]], [[*place, [1.0, 2.0]]]).verdict == "equal"
    assert compare.judge("operation", "x", [[*place, [1.0, 2.0]]], [[*place, [1.0, 3.0]]]).verdict == "numbers"
    assert compare.judge("operation", "x", [[*place, [1.0]]], [["cpu", *place[1:], [1.0]]]).verdict == "differs"
    assert compare.judge("situation", "x", "RuntimeError: a", "RuntimeError: b").verdict == "differs"
    assert compare.judge("situation", "x", "not run: needs a second card", "RuntimeError: b").verdict == "not run"


@pytest.mark.slow
def test_the_virtual_half_answers_everything() -> None:
    found = compare.collect("virtual")
    assert {group: len(answers) > 6 for group, answers in found.items()} == dict.fromkeys(found, True)
    assert not any(answer == "no error" for answer in found["notebook"].values())
    assert all(isinstance(answer, list) for group in ("operation", "program") for answer in found[group].values())
