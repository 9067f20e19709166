"""Texts that no template knows."""

from __future__ import annotations

import pytest

from ipydevice.messages import recognise
from messages import texts


@pytest.mark.parametrize("row", texts.rows("unknown.tsv"), ids=lambda row: row["text"][:50])
def test_reader_finds_what_the_text_says(row: dict[str, str]) -> None:
    mismatch = recognise(RuntimeError(row["text"]))
    assert mismatch is not None
    assert (mismatch.id, mismatch.confidence) == ("reader", "reader")
    assert mismatch.kind == row["kind"]
    assert mismatch.devices == tuple(row["devices"].split())
    assert mismatch.argument == (row["argument"] or None)
    assert mismatch.argument_device == (row["argument_device"] or None)
    assert mismatch.reference_device == (row["reference_device"] or None)
    if row["kind"] == "placement":
        assert "the variable" in mismatch.unknown


@pytest.mark.parametrize(
    ("text", "roles"),
    [
        ("src is on cuda:0 but index is on cpu", {"src": "cuda:0", "index": "cpu"}),
        ("expected same device, got x.device=cuda:0 and y.device=cpu", {"x": "cuda:0", "y": "cpu"}),
        ("mask (cpu) and scores (mps:0) are on different devices", {"mask": "cpu", "scores": "mps:0"}),
        ("boxes: cuda:1, anchors: cuda:0 must be on the same device", {"boxes": "cuda:1", "anchors": "cuda:0"}),
        ("expected input on cuda:0 but got cpu", {"input": "cpu"}),
    ],
)
def test_reader_finds_roles(text: str, roles: dict[str, str]) -> None:
    mismatch = recognise(ValueError(text))
    assert mismatch is not None
    assert mismatch.roles == roles


def test_host_is_required_where_the_cpu_is_demanded() -> None:
    mismatch = recognise(RuntimeError("counts must be on the CPU"))
    assert mismatch is not None
    assert (mismatch.host_required, mismatch.argument) == ("counts", "counts")


def test_dumps_of_tensors_are_not_statements() -> None:
    text = "shapes differ: FakeTensor(..., device='cuda:0', size=(2, 3)) and FakeTensor(..., device='cpu', size=(4,))"
    assert recognise(RuntimeError(text)) is None
