from __future__ import annotations

import dataclasses
import re

import pytest
from views import HOSTILE, LONG, STANDARD, VIEWS, WIDE
from wcwidth import wcswidth

from ipydevice import printing, show
from ipydevice.diagnosis import Edit, Fix, Mark, Place
from ipydevice.show.escape import cells, crop, visible, wrap
from ipydevice.show.marks import lay_out

ANSI = re.compile(r"\x1b\[[0-9;]*m")


def test_a_standard_panel_takes_at_most_twelve_lines():
    assert len(show.text(STANDARD).splitlines()) <= 12


@pytest.mark.parametrize("name", VIEWS)
@pytest.mark.parametrize("width", [40, 60, 80, 100, 160])
def test_no_line_is_wider_than_asked(name, width):
    for line in show.text(VIEWS[name], width=width).splitlines():
        assert wcswidth(line) <= width, line


@pytest.mark.parametrize("name", VIEWS)
def test_colour_changes_nothing_but_colour(name):
    assert ANSI.sub("", show.text(VIEWS[name], color=True)) == show.text(VIEWS[name])


SEVERAL = "".join(f"    self.part{i} = nn.Linear(4, 4)\n" for i in range(6))


def with_first_fix(**edit):
    edited = Fix("one", "edit", (Edit(**edit, cell=7, cell_id="c7"),), rerun=STANDARD.fixes[0].rerun)
    return dataclasses.replace(STANDARD, fixes=(edited, *STANDARD.fixes[1:]))


def test_several_lines_of_code_are_cut_with_an_ellipsis():
    text = show.text(with_first_fix(before="def f():\n", after="def f():\n" + SEVERAL))
    assert "\n             + self.part0 = nn.Linear(4, 4)\n" in text
    assert "\n             + self.part2 = nn.Linear(4, 4) …\n" in text
    assert "part3" not in text
    assert len(text.splitlines()) <= 12


def test_removed_lines_are_shown_where_none_is_added():
    assert "- self.part0 = nn.Linear(4, 4)" in show.text(
        with_first_fix(before="def f():\n" + SEVERAL, after="def f():\n")
    )


def test_lines_of_code_keep_their_indentation_among_each_other():
    text = show.text(with_first_fix(before="", after="    for state in states:\n\n        state.move()\n"))
    assert "             + for state in states:\n             +     state.move()\n" in text


def test_notes_go_before_the_code_does():
    view = with_first_fix(before="", after=SEVERAL)
    long = dataclasses.replace(
        view,
        notes=("a note", "another"),
        fixes=(dataclasses.replace(view.fixes[0], note="word " * 60), *view.fixes[1:]),
    )
    text = show.text(long)
    assert len(text.splitlines()) <= 12
    assert "+ self.part0 = nn.Linear(4, 4) …" in text


def test_further_fixes_share_lines_before_the_code_of_the_first_goes():
    view = with_first_fix(before="", after=SEVERAL)
    long = dataclasses.replace(view, explanation="word " * 50, fixes=(*view.fixes, view.fixes[1], view.fixes[1]))
    lines = show.text(long).splitlines()
    assert len(lines) <= 12
    assert "             + self.part0 = nn.Linear(4, 4) …" in lines
    shared = next(line for line in lines if "%devicefix 2" in line)
    assert shared.startswith("          2  move it at the call · 3  move it at the call")
    assert " ".join(lines).count("move it at the call") == 3


def test_code_stands_beside_the_command_where_that_has_a_line_of_its_own():
    view = with_first_fix(before="", after=SEVERAL[: SEVERAL.index("\n") + 1])
    titled = dataclasses.replace(view.fixes[0], title="a title that takes the whole line, so that nothing is beside it")
    text = show.text(dataclasses.replace(view, fixes=(titled,)), width=80)
    assert re.search(r"^ {13}\+ self\.part0 = nn\.Linear\(4, 4\) +re-runs In \[7\]   %devicefix 1$", text, re.MULTILINE)


def test_where_no_session_applies_them_all_fixes_show_old_and_new_code():
    view = with_first_fix(before=SEVERAL, after=SEVERAL.replace("Linear", "Lazy"))
    lines = [line.strip() for line in printing.panel(view, color=False).splitlines()]
    at = lines.index("- self.part0 = nn.Linear(4, 4)")
    assert lines[at + 1 : at + 5] == [
        "- self.part1 = nn.Linear(4, 4)", "+ self.part0 = nn.Lazy(4, 4)", "+ self.part1 = nn.Lazy(4, 4)", "…",
    ]  # fmt: skip
    assert "+ loss = F.cross_entropy(logits, labels.to(device))" in lines


def test_marks_stand_under_their_operands():
    _, code, underline, label, *_ = show.text(STANDARD).splitlines()
    assert underline.index("─") == code.index("logits")
    assert label.index("cuda:0") == code.index("logits")
    assert label.index("cpu") == code.index("labels")


def test_marks_stand_under_wide_characters():
    _, code, underline, label, *_ = show.text(WIDE).splitlines()
    column = wcswidth(code[: code.index("数据")])
    assert label.index("cpu") == column
    assert underline.count("─") == 8


@pytest.mark.parametrize("count", [2, 3, 6, 9])
def test_the_code_of_the_first_fix_stays_however_many_there_are(count):
    further = tuple(dataclasses.replace(STANDARD.fixes[1], title=f"move it in the way {n}") for n in range(count))
    crowded = dataclasses.replace(
        STANDARD,
        fixes=(STANDARD.fixes[0], *further),
        marks=tuple(Mark(at, at + 1, f"cuda:{at}", "x", (3,), "float32") for at in range(0, 6, 2)),
    )
    lines = show.text(crowded).splitlines()
    assert len(lines) <= 12
    assert "             + labels = labels.to(device)" in lines
    (rest,) = [line for line in lines if "2  move it in the way 0" in line]
    assert rest.endswith(f"%devicefix 2 or {' or '.join(str(n) for n in range(3, count + 2))}")
    shown = rest.count("move it in the way")
    assert (f" · {count - shown} more " in rest) == (shown < count)


def test_labels_that_would_collide_take_two_lines():
    marks = (Mark(0, 1, "cuda:0", "x"), Mark(4, 5, "cpu", "y"))
    lines = ["".join(" " * 0 + p.text for p in line) for line in lay_out("x + y", marks)]
    assert lines == ["x + y", "──", "│cpu", "cuda:0"]
    assert [[p.column for p in line] for line in lay_out("x + y", marks)[2:]] == [[0, 4], [0]]


@pytest.mark.parametrize("width", [20, 40, 60])
def test_a_long_line_is_cropped_around_its_marks(width):
    source = "result = " + "f(a) + " * 40 + "g(stray)" + " + h(b)" * 40
    start = source.index("stray")
    text, underline, *_ = lay_out(source, [Mark(start, start + 5, "cpu", "stray", stray=True)], width)
    line = "".join(piece.text for piece in text)
    assert cells(line) <= width
    assert line[underline[0].column :].startswith("stray")


def test_marks_outside_the_line_do_no_harm():
    assert lay_out("x", [Mark(5, 9, "cpu", "y")]) == lay_out("x", [])
    assert lay_out("", [Mark(0, 3, "cpu", "y")]) == [[]]


def test_hostile_strings_stay_on_their_line_and_out_of_the_terminal():
    text = show.text(HOSTILE)
    assert "\x1b" not in text
    assert "\u202e" not in text
    text.encode()
    assert r"\x1b[2J" in visible("\x1b[2J")


def test_confidence_is_said_unless_certain():
    def why(confidence):
        return show.text(dataclasses.replace(STANDARD, confidence=confidence))

    assert "probably" not in why("certain")
    assert "a guess" not in why("certain")
    assert "why     probably: labels" in why("likely")
    assert "why     a guess: labels" in why("guess")


def test_ids_stand_there_to_be_searched_for():
    assert "PT001" in show.text(STANDARD)
    assert "common_check" in show.text(STANDARD)


def test_three_hundred_rows_are_cut_and_counted():
    text = show.text(LONG)
    assert "and 260 more" in text
    assert len(text.splitlines()) < 50


def test_nothing_known_still_says_the_message():
    bare = dataclasses.replace(STANDARD, headline="", failed=Place(), marks=(), fixes=(), placements=(), explanation="")
    assert show.text(bare, width=400).startswith("✗ Expected all tensors")


def test_something_else_is_refused_with_what_was_expected():
    with pytest.raises(TypeError, match=r"expected a Diagnosis, .* to show, got dict"):
        show.text({})


def test_wrap_breaks_words_only_where_it_must():
    assert wrap("aa bb cc", 5) == ["aa bb", "cc"]
    assert wrap("a" * 12 + " b", 5) == ["aaaaa", "aaaaa", "aa b"]
    assert wrap("", 5) == [""]
    assert wrap("漢字漢字", 5) == ["漢字", "漢字"]


def test_crop_keeps_both_ends():
    assert crop("abcdefghij", 7) == "abcd…ij"
    assert crop("short", 7) == "short"
    assert crop("abc", 1) == "…"
