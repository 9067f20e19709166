"""Each template, filled in, is found again: none hides another, none is shut out by the cheap test."""

from __future__ import annotations

import itertools
import re

import pytest

from ipydevice.messages import Mismatch, catalogue, recognise
from ipydevice.messages.entries import Entry, entries
from ipydevice.messages.template import anchor, pattern, places
from messages import texts

SAMPLES = {
    "device": ["cuda:0", "mps:0", "xpu:1"],
    "cpu": ["cpu"],
    "known": ["cuda", "cpu"],
    "type": ["torch.FloatTensor", "torch.cuda.FloatTensor"],
    "enum": ["MPSFloatType", "CPUFloatType"],
    "index": ["0", "1", "0"],
    "raw": ["\x01", "\x02"],
    "dlpack": ["2, 0", "1, 0"],
    "ctype": ["1", "0"],
    "devices": ["{device(type='cuda', index=0), device(type='cpu')}", "cuda:1"],
    "arg": ["weight"],
    "method": ["wrapper_CUDA_addmm"],
    "op": ["aten::addmm"],
    "role": ["first_role", "second_role"],
    "word": ["word"],
    "int": ["2"],
    "number": ["3"],
    "any": ["[anything, at all]"],
}


def filled(entry: Entry, turn: int) -> str:
    """The template as a text, with sample values, the first ones or those after them."""
    text = entry.template.removeprefix("^").removesuffix("$")
    text = re.sub(r"<<=?(.*?)>>", lambda choice: choice[1].split("|")[0], text)
    text = text.replace("[[", "").replace("]]", "")
    samples = {kind: itertools.cycle(values[turn:] + values[:turn]) for kind, values in SAMPLES.items()}
    return re.sub(r"\{(\w+)(?::[\w/.]+)?\}", lambda place: next(samples[place[1]]), text)


def said(entry: Entry) -> Mismatch | None:
    """A template about one device needs the right one of two: pinning a CPU tensor is no device error."""
    kind = entry.exception.split("|")[0] or "RuntimeError"
    both = (recognise(texts.exception(kind, filled(entry, turn))) for turn in (0, 1))
    return next((mismatch for mismatch in both if mismatch is not None), None)


@pytest.mark.parametrize("entry", entries(), ids=lambda entry: entry.id)
def test_filled_template_is_found_again(entry: Entry) -> None:
    mismatch = said(entry)
    assert mismatch is not None
    assert mismatch.id == entry.id
    assert mismatch.family == entry.family
    assert mismatch.order == entry.order
    assert mismatch.versions == entry.versions
    stated = [
        place
        for place in entry.places
        if place.kind in ("device", "known", "cpu", "type", "enum", "index", "raw", "dlpack")
    ]
    assert len(mismatch.devices) >= min(len(stated), 2)


@pytest.mark.parametrize("entry", entries(), ids=lambda entry: entry.id)
def test_two_roles_are_explained(entry: Entry) -> None:
    labelled = [place for place in entry.places if place.role]
    if len(labelled) > 1:
        assert entry.order


def test_anchor_is_the_longest_piece_that_is_always_there() -> None:
    assert anchor("got {device} and [[perhaps a very long remark]] then {any} so") == "then"
    assert anchor("^Invalid   device\tid$") == "invalid device id"


def test_pattern_allows_for_white_space_and_case() -> None:
    found = pattern("<<is|are>> on {device:input}[[ now]]$").search("ARE  on\ncuda:0 now")
    assert found is not None
    assert found["p0"] == "cuda:0"
    assert places("<<is|are>> on {device:input}")[0].role == "input"


def test_marked_text_counts_its_case() -> None:
    assert pattern("<<=Found>> it").search("Found IT")
    assert not pattern("<<=Found>> it").search("found it")


def test_catalogue_lists_each_id_once_and_in_order() -> None:
    ids = [entry.id for entry in catalogue()]
    assert len(ids) == len(set(ids))
    assert set(ids) == {entry.id for entry in entries()}
    assert ids[0] == "PT001"
    assert [name for name in ids if name.startswith("PT")] == sorted(name for name in ids if name.startswith("PT"))
