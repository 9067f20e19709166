"""Damaged and mixed-up texts, as logs and posts have them: never an error of ours, and never a stall."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from ipydevice import postmortem, printing, text_traceback

TEXTS = [path.read_text(encoding="utf-8") for path in sorted((Path(__file__).parent / "pasted").glob("*.txt"))]
ODD = [
    "\x1b[31m",
    "│",
    "❱ 3 │",
    "Cell In[3], line 2\n",
    "----> 7 (\n",
    '  File "", line 0\n',
    "E   \n",
    ">   x\n",
    "def f(:\n",
]


def damaged(text: str, chance: random.Random) -> str:
    lines = text.splitlines(keepends=True)
    for _ in range(chance.randint(1, 6)):
        at = chance.randrange(len(lines)) if lines else 0
        match chance.randrange(5):
            case 0:
                del lines[at : at + 1]
            case 1:
                lines.insert(at, chance.choice(chance.choice(TEXTS).splitlines(keepends=True)))
            case 2 if lines:
                lines[at] = lines[at][: chance.randrange(len(lines[at]) + 1)]
            case 3:
                chance.shuffle(lines)
            case _:
                lines.insert(at, chance.choice(ODD))
    return "".join(lines)


@pytest.mark.parametrize("seed", range(150))
def test_damaged_texts(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("IPYDEVICE_DEBUG", "1")  # our own failures are raised
    chance = random.Random(seed)
    for error in text_traceback.read(damaged(chance.choice(TEXTS), chance)):
        diagnosis = postmortem.explain_printed(error)
        if diagnosis is not None:
            printing.panel(diagnosis, color=False)


@pytest.mark.parametrize(
    "text",
    [
        "x" * 2_000_000,
        "│" + " " * 500_000 + "x",
        "╭" + "─" * 500_000 + "x",
        "1 " * 500_000,
        "----> 1 x\n" * 50_000,
        "In [1], " * 100_000,
    ],
    ids=["one long line", "an open box", "a long border", "numbers", "arrows", "heads"],
)
def test_long_texts_end(text: str) -> None:
    assert text_traceback.read(text) == []
