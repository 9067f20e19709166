"""The corpus of failing notebooks once more, read from the saved file alone: no object, no frame, nothing run.

What was named right stays so; IPYDEVICE_REGEN=1 writes the list anew.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
PINS = HERE / "right_from_text.txt"
MENDED = HERE / "mended_from_text.txt"


@pytest.fixture(scope="module")
def answers() -> list[dict[str, Any]]:
    run = subprocess.run(
        [sys.executable, HERE / "case_texts.py", HERE.parent / "cases"],
        capture_output=True, text=True, check=False, env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert run.returncode == 0, run.stderr
    return [json.loads(line) for line in run.stdout.splitlines()]


@pytest.mark.slow
def test_each_case_is_explained(answers: list[dict[str, Any]]) -> None:
    assert [answer for answer in answers if "failed" in answer] == []


@pytest.mark.slow
def test_what_is_likely_is_right(answers: list[dict[str, Any]]) -> None:
    sure = [answer for answer in answers if answer["confidence"] != "guess" and answer["expression"]]
    assert len(sure) > 10
    wrong = [answer for answer in sure if not answer["right"]]
    assert len(wrong) <= 0.05 * len(sure), wrong
    assert all(answer["confidence"] != "certain" for answer in answers)


@pytest.mark.slow
@pytest.mark.parametrize("pins", [PINS, MENDED], ids=["named", "mended"])
def test_what_was_right_stays_right(answers: list[dict[str, Any]], pins: Path) -> None:
    right = sorted(one["name"] for one in answers if (one["right"] if pins is PINS else one["left_wrong"] == ""))
    if os.environ.get("IPYDEVICE_REGEN"):
        pins.write_text("".join(f"{name}\n" for name in right))
    there = {answer["name"] for answer in answers}
    assert set(pins.read_text().split()) & there <= set(right)
