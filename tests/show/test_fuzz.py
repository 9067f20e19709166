"""Diagnoses of random nastiness: every view stays well-formed, and nothing of it becomes markup or a command."""

from __future__ import annotations

import json
import random
import zlib

import pytest
from test_html import ALLOWED, read
from views import WORKSPACE
from wcwidth import wcswidth

from ipydevice import show
from ipydevice.diagnosis import Diagnosis, Edit, Fix, Inventory, Mark, MarkedLine, Place, Rerun, Row
from ipydevice.show import as_widget, front_end

PIECES = [
    *("<", ">", "&", '"', "'", "`", "</pre>", "<script>x</script>", "<!--", "-->", "]]>", "&lt;", "\\", "{", "%"),
    *("\x00", "\x07", "\x1b[2J", "\x1b]0;t\x07", "\x9b31m", "\r", "\n", "\t", "\u202e", "\u2066", "\u2028", "\ufeff"),
    *("\ud800", "\udfff", "😀", "👩‍💻", "é", "e\u0301", "漢", "한", "ｶ", "\u200b", "\u00ad", "\U000e0001"),
    *("a", "x.y", " ", "  ", "self.model.layer", "cuda:0", "W" * 60, "", "1"),
]


def text(dice: random.Random) -> str:
    return "".join(dice.choices(PIECES, k=dice.randint(0, 6)))


def diagnosis(dice: random.Random) -> Diagnosis:
    source = text(dice) * dice.randint(1, 8)

    def some_marks() -> tuple[Mark, ...]:
        ends = [(dice.randint(-2, 90), dice.randint(-2, 90)) for _ in range(dice.randint(0, 5))]
        return tuple(
            Mark(start, end, text(dice), text(dice), (1,) * dice.randint(0, 9), text(dice), dice.random() < 0.3)
            for start, end in ends
        )

    marks = some_marks()
    further = tuple(
        MarkedLine(dice.randint(1, 2000), text(dice) * dice.randint(1, 8), some_marks(), dice.randint(0, 90))
        for _ in range(dice.randint(0, 7))
    )
    place = Place(dice.choice([None, 1]), text(dice), text(dice), dice.choice([None, 3]), source)
    fixes = tuple(
        Fix(
            text(dice),
            dice.choice(["edit", "repair", "patch", "guard"]),
            tuple(Edit(text(dice), text(dice), 1, text(dice), dice.choice([None, text(dice)])) for _ in range(2)),
            dice.choice([None, text(dice)]),
            (Rerun(dice.choice([None, 1]), text(dice), text(dice)),) * dice.randint(0, 2),
            text(dice),
            diff=dice.choice([None, text(dice)]),
        )
        for _ in range(dice.randint(0, 4))
    )
    rows = tuple(
        Row(text(dice), text(dice), text(dice), text(dice), dice.random() < 0.5, (dice.randint(0, 9),), text(dice), 7)
        for _ in range(dice.randint(0, 6))
    )
    return Diagnosis(
        message=text(dice),
        family=text(dice),
        headline=text(dice),
        message_id=text(dice),
        op=text(dice),
        failed=place,
        failed_cell_source=source,
        marks=marks,
        further=further,
        origin=place,
        confidence=dice.choice(["certain", "likely", "guess"]),
        evidence=(text(dice),),
        explanation=text(dice),
        habit=text(dice),
        fixes=fixes,
        placements=rows,
        notes=(text(dice),),
    )


@pytest.mark.parametrize("seed", range(150))
def test_nothing_breaks_out(seed):
    dice = random.Random(seed)
    made = diagnosis(dice)
    for view in (made, Inventory(made.placements, {text(dice): 3})):
        for width in (40, 97):
            for line in show.text(view, width=width).split("\n"):
                assert 0 <= wcswidth(line) <= width
        assert show.text(view, color=True).count("\x1b") % 2 == 0
        page = show.html(view)
        assert read(page).tags <= ALLOWED
        page.encode()
        json.dumps(front_end.bundle(view, show.tree_of(view), "u"), ensure_ascii=False).encode()
        for trait in (as_widget.data(view, show.tree_of(view), "u"), as_widget.rows(show.tree_of(view))):
            json.loads(zlib.decompress(trait))
        show.markdown(view).encode()


def test_the_fuzz_would_notice():
    """Markup that gets through is seen: else the tests above prove nothing."""
    page = show.html(WORKSPACE).replace("model.pe", "<script>")
    with pytest.raises(AssertionError):
        assert read(page).tags <= ALLOWED
