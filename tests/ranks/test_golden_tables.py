"""Whole tables against stored ones. IPYDEVICE_REGEN=1 rewrites them; read the difference before committing it."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from ipydevice.ranks import across, table
from ipydevice.ranks.report import CardMemory, Missing, ModelRow, RankRow, RanksReport
from ipydevice.toolbox.troubles import Trouble

GOLDEN = Path(__file__).parent / "golden"
GIB = 1 << 30


def rank(number: int, size: int = 4, **facts: object) -> RankRow:
    """A process of a job that does well, on nodes of eight cards."""
    card = f"cuda:{number % 8}"
    model = ModelRow("model", "ResNet", {card: 98 << 20}, 320, "5d41402abc4b", "DistributedDataParallel")
    peers = tuple(f"cuda:{n}" for n in range(8) if n != number % 8)
    row = RankRow(
        number, f"node{number // 8}", 4000 + number, size, number % 8, number, card, f"GPU-{number:08x}", 8,
        models=(model,), memory=(CardMemory(card, 3 * GIB, 4 * GIB, 9 * GIB, 80 * GIB),), backend="cpu:gloo,cuda:nccl",
        nccl="2.27.3", torch="2.9.1+cu128", driver="12.8", peers=peers,
    )  # fmt: skip
    return replace(row, **facts)  # type: ignore[arg-type]


def well() -> RanksReport:
    return RanksReport(tuple(rank(n) for n in range(4)))


def wrong() -> RanksReport:
    late = Trouble(
        "the model is on cuda:2 and the current device is cuda:0", "torch.cuda.set_device(2)", "current_device"
    )
    strange = ModelRow("model", "ResNet", {"cuda:3": 90 << 20}, 318, "000000000000", "DistributedDataParallel")
    return RanksReport(
        (
            rank(0, memory=(CardMemory("cuda:0", 30 * GIB, 31 * GIB, 33 * GIB, 80 * GIB),)),
            rank(2, current="cuda:0", card="GPU-00000000", troubles=(late,)),
            rank(3, models=(strange,), peers=("cuda:2",), torch="2.8.0+cu126", driver="12.6", visible="0,1,2,3"),
        ),
        (Missing(1, "its process has ended", "node0", 4001),),
    )


def alone() -> RanksReport:
    return RanksReport((rank(0, 1),))


def many() -> RanksReport:
    rows = [rank(n, 1000) for n in range(1000)]
    rows[700] = replace(rows[700], error="labels is on cpu, logits is on cuda:4 (train.py, line 31)")
    return RanksReport(tuple(rows), (Missing(1000, "no answer in 10 s"),))


@pytest.mark.parametrize("made", [well, wrong, alone, many], ids=lambda made: made.__name__)
def test_tables(made: object) -> None:
    assert callable(made)
    text = table.text(across.compared(made()), width=110) + "\n"
    stored = GOLDEN / f"{made.__name__}.txt"
    if os.environ.get("IPYDEVICE_REGEN") == "1":
        stored.write_text(text, encoding="utf-8")
    assert text == stored.read_text(encoding="utf-8")
