from __future__ import annotations

import dataclasses
import re
from html.parser import HTMLParser

import pytest
from views import HOSTILE, HOSTILE_NAME, STANDARD, VIEWS

from ipydevice import show
from ipydevice.diagnosis import Row

_TAGS = "b code del details div i ins li ol p pre small span strong style summary table tbody td th thead tr"
ALLOWED = set(_TAGS.split(" "))
VOID = {"br", "hr", "img", "input"}


class Reader(HTMLParser):
    """Tags, attributes and text; fails where the nesting is broken."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.text = ""

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        self.attributes.update(name for name, _ in attrs)
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] != "style":
            self.text += data


def read(html: str) -> Reader:
    reader = Reader()
    reader.feed(html)
    reader.close()
    assert not reader.open
    return reader


@pytest.mark.parametrize("name", VIEWS)
def test_only_harmless_tags_and_attributes(name):
    reader = read(show.html(VIEWS[name]))
    assert reader.tags <= ALLOWED
    assert not any(attribute.startswith("on") or attribute in ("src", "href") for attribute in reader.attributes)


def test_hostile_strings_are_text():
    html = show.html(HOSTILE)
    assert "<script" not in html
    assert "\x1b" not in html
    assert "\u202e" not in html
    html.encode()
    assert read(html).text.count("<script>alert(1)</script>") >= 8


def test_every_string_of_a_diagnosis_is_escaped():
    """Any new field shown has to pass here: each text of HOSTILE is hostile."""
    raw = re.sub(r"<style>.*?</style>", "", show.html(HOSTILE), flags=re.DOTALL)
    assert HOSTILE_NAME.split("\x1b")[0] not in raw


def test_it_needs_nothing_from_elsewhere():
    html = show.html(STANDARD)
    assert "http" not in html
    assert "url(" not in html
    assert "@import" not in html


def test_it_reads_well_without_its_style_sheet():
    text = re.sub(r"\s+", " ", read(show.html(STANDARD)).text)
    for said in (
        "✗ labels is on cpu, logits is on cuda:0",
        "In [7], line 4",
        "cuda:0 cpu float32[32, 10] · int64[32]",
        "move labels in the loop",
        "re-runs In [7] · %devicefix 1",
        "+ labels = labels.to(device)",
        "images is moved in line 2",
        "PT001 common_check",
    ):
        assert said in text


def test_marks_stand_under_their_operands():
    source, underline, devices = read(show.html(STANDARD)).text.split("line 4", 1)[1].splitlines()[:3]
    assert underline.index("─") == source.index("logits") == devices.index("cuda:0")
    assert devices.index("cpu") == source.index("labels")


def test_library_frames_are_folded_below_the_users():
    html = show.html(STANDARD)
    assert html.index("<td>cpu</td>") < html.index("1 name in library frames") < html.index("cross_entropy()")


def test_three_hundred_rows_take_less_than_forty_kilobytes():
    rows = tuple(
        Row(f"model.layer{i}.weight", "parameter", "cuda:0", "In [7]", True, (64, 64), "float32", i) for i in range(300)
    )
    assert len(show.html(dataclasses.replace(STANDARD, placements=rows))) < 40_000


def test_a_table_that_is_cut_keeps_its_first_rows_and_what_is_odd():
    rows = [Row(f"layer{i}", "parameter", "cuda:0", "In [7]") for i in range(1000)]
    rows[900] = dataclasses.replace(rows[900], odd="on two devices")
    html = show.html(dataclasses.replace(STANDARD, placements=tuple(rows), placements_left=5))
    assert html.count(">\u2003layer") == 299  # with the frame's line 300
    assert "layer297<" in html
    assert "layer298<" not in html
    assert "layer900<" in html
    assert "and 706 more" in html
