"""Every known text, with no frame at all: the panel says what is known, what is not, and how to find out."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from ipydevice import postmortem, show
from ipydevice.text_traceback import PastedError

_KNOWN = Path(__file__).parents[1] / "messages" / "known.tsv"
_ESCAPES = (("\\n", "\n"), ("\\x01", "\x01"), ("\\x02", "\x02"))


def _rows() -> list[dict[str, str]]:
    with _KNOWN.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
    for row in rows:
        for escape, meant in _ESCAPES:
            row["text"] = row["text"].replace(escape, meant)
    return rows


@pytest.mark.parametrize("row", _rows(), ids=lambda row: row["id"])
def test_text_alone(row: dict[str, str]) -> None:
    diagnosis = postmortem.explain_printed(PastedError(row["exception"], row["text"]))
    assert diagnosis is not None
    assert diagnosis.message_id == row["id"]
    assert diagnosis.headline
    assert diagnosis.explanation
    assert diagnosis.confidence != "certain"
    assert diagnosis.culprit is None or diagnosis.culprit.expression in row["text"]
    panel = show.text(diagnosis)
    assert row["id"] in panel  # to search for
    if diagnosis.cause != "no_accelerator":
        assert "%%devicecheck" in panel
    assert not any("failed while" in note for note in diagnosis.notes)
