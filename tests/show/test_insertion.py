from __future__ import annotations

import pytest

from ipydevice.diagnosis import Edit, Fix, Rerun
from ipydevice.show.insertion import cells_of, headed


def test_an_edit_says_what_it_replaces_and_what_to_run_then():
    fix = Fix(
        "t", "edit", (Edit("a", "b", 2, "c2"),), rerun=(Rerun(2, "c2", "b"), Rerun(3, "c3", "x"), Rerun(7, "c7", "y"))
    )
    assert cells_of(fix, 1) == ("# replaces In [2]; then run In [3], In [7]\nb",)


def test_several_edits_make_several_cells_and_the_last_says_what_to_run():
    fix = Fix("t", "edit", (Edit("a", "b", 2), Edit("c", "d", 3)), "x = 1", (Rerun(2, None, "b"), Rerun(7, None, "y")))
    assert cells_of(fix, 1) == ("# replaces In [2]\nb", "# replaces In [3]\nd", "# run this; then run In [7]\nx = 1")


def test_what_an_edited_cell_needs_is_run_first():
    """Run afterwards, the cells that make the objects would undo what the edited one has done."""
    again = (Rerun(9, None, "x"), Rerun(10, None, "y"), Rerun(11, None, "b"))
    assert cells_of(Fix("t", "edit", (Edit("a", "b", 11),), rerun=again), 1) == (
        "# replaces In [11]; first run In [9], In [10]\nb",
    )
    again = (Rerun(4, None, "b"), Rerun(5, None, "x"), Rerun(7, None, "d"), Rerun(8, None, "y"))
    assert cells_of(Fix("t", "edit", (Edit("a", "b", 4), Edit("c", "d", 7)), rerun=again), 1) == (
        "# replaces In [4]\nb",
        "# replaces In [7]; first run In [5]; then run In [8]\nd",
    )


def test_a_repair_says_that_it_is_to_be_run():
    assert cells_of(Fix("t", "repair", setup="x = x.to(d)", rerun=(Rerun(None, None, "y"),)), 1) == (
        "# run this; then run the cell\nx = x.to(d)",
    )


def test_files_are_written_by_the_kernel():
    assert cells_of(Fix("t", "patch", (Edit("a", "b", file="m.py"),), diff="…"), 2) == ("%devicefix 2 --apply",)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("%%time\nf()", "%%time\n# h\nf()"),
        ("\n%%capture out\nf()\n", "\n%%capture out\n# h\nf()\n"),
        ("%time f()", "# h\n%time f()"),
        ("%%html", "%%html\n# h\n"),
        ("", "# h\n"),
    ],
)
def test_the_heading_stands_below_a_cell_magic(text, expected):
    assert headed(text, "# h") == expected


@pytest.mark.parametrize(
    "text",
    [
        "# replaces In [2]; then run In [3]\nf(x)",
        "# replaces In [2]\n# run this; then run the cell\nf(x)",
        "# replaces In [2]; first run In [1]; then run In [3]\nf(x)",
        "%%time\n# replaces In [2]\nf(x)",
    ],
)
def test_headings_do_not_pile_up(text):
    magic = "%%time\n" if text.startswith("%%") else ""
    assert headed(text, "# replaces In [4]") == f"{magic}# replaces In [4]\nf(x)"


def test_other_comments_on_top_stay():
    assert headed("# replaces nothing\nf(x)", "# h") == "# h\n# replaces nothing\nf(x)"
