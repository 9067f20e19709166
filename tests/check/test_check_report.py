"""The report: the same in text, HTML and as data; fixes one by one and all at once."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest
from conftest import Notebook, numbers

from ipydevice import fixes, show
from ipydevice.devicecheck.together import all_at_once
from ipydevice.diagnosis import Diagnosis, Edit, Fix, Place, Rerun
from ipydevice.report import CheckFinding, CheckReport, Elsewhere, Transfer

GOLDEN = Path(__file__).with_name("golden")

MODEL = """torch.manual_seed(1)
model = nn.Linear(4, 3).to(device)
data = [(torch.randn(5, 4), torch.randint(0, 3, (5,))) for _ in range(3)]
"""
CELL = """total = 0
for images, labels in data:
    images = images.to(device)
    loss = F.cross_entropy(model(images), labels)
    loss.backward()
    total += loss.item()
weights = torch.ones(3)
y = model(images) * weights
"""


def same_text(name: str, report: CheckReport) -> None:
    """Compares with a golden file; IPYDEVICE_REGEN=1 writes it."""
    report.seconds = 0.012  # the one thing that differs from run to run
    text = show.text(report) + "\n"
    path = GOLDEN / f"{name}.txt"
    if os.environ.get("IPYDEVICE_REGEN") == "1":
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, "utf-8")
    assert path.read_text("utf-8") == text


def test_text_of_a_training_loop(notebook: Notebook) -> None:
    notebook.run(MODEL)
    same_text("training_loop", notebook.check(CELL).report)


def test_text_of_a_clean_cell(notebook: Notebook) -> None:
    same_text("clean", notebook.check("x = torch.ones(3, device=device)\ny = x + 1").report)


def test_text_with_an_expected_device(notebook: Notebook) -> None:
    notebook.run("host = torch.arange(6.0)")
    report = notebook.check("a = torch.zeros(3)\nb = host * 2\nc = host.to(device)", "cuda:0").report
    same_text("expected_device", report)


def test_text_after_an_error(notebook: Notebook) -> None:
    same_text("after_an_error", notebook.check("x = torch.ones(3, device=device) + torch.ones(3)\n{}[1]").report)


def test_html_says_what_the_text_says(notebook: Notebook) -> None:
    notebook.run(MODEL)
    report = notebook.check(CELL).report
    page = show.html(report)
    for said in ("2 device mistakes", "labels", "weights", "loss.item()", "×3 in a loop", "all at once"):
        assert said in page
    assert "<script" not in page
    assert [int(number) for number in re.findall(r'data-fix="(\d+)"', page)] == sorted(
        int(number) for number in re.findall(r'data-fix="(\d+)"', page)
    )


def test_hostile_strings_stay_strings() -> None:
    bad = "<img src=x onerror=hacked()>\x1b[2J\u202e"
    place = Place(1, None, line=1, source=bad, function=bad)
    report = CheckReport(
        findings=(CheckFinding(Diagnosis(bad, bad, bad, failed=place), (place,), 2, True, bad),),
        transfers=(Transfer(place, "copy", bad, bad, bad, bad, advice=bad),),
        elsewhere=(Elsewhere(place, "made", bad, bad),),
        expected=bad,
        notes=(bad,),
        mutated=(bad,),
        dry=True,
    )
    page, text = show.html(report), show.text(report)
    assert "<img" not in page
    assert "\x1b" not in page + text
    assert "\u202e" not in page + text


def test_data_is_json_with_stable_keys(notebook: Notebook) -> None:
    notebook.run(MODEL)
    report = notebook.check(CELL).report
    plain = json.loads(json.dumps(report.to_dict()))
    assert set(plain) == {
        "findings", "transfers", "elsewhere", "odd", "mends", "together", "expected", "calls", "seconds", "error",
        "stopped", "dry", "mutated", "notes", "cell", "cell_id", "cell_source", "done",
    }  # fmt: skip
    first = plain["findings"][0]
    assert set(first) == {"diagnosis", "places", "count", "repaired", "repair", "mended_with"}
    assert first["diagnosis"]["culprit"]["expression"] == "labels"
    assert plain["transfers"][0]["place"]["line"] == 4
    assert plain["cell"] == report.findings[0].diagnosis.failed.cell


def test_all_fixes_at_once_mend_the_cell(notebook: Notebook) -> None:
    notebook.run(MODEL)
    report = notebook.check(CELL).report
    fix = report.together
    assert fix is not None
    assert fix is report.fixes[0]
    cells = [
        {"cell": cell.number, "cell_id": cell.cell_id, "source": cell.raw}
        for cell in notebook.shell.ip.__dict__["_ipydevice_hook"].history.current()
    ]
    _, rerun = fixes.apply(cells, fix)
    before = numbers(notebook.names)
    for again in rerun:
        notebook.run(again["source"])
    after = notebook.names["report"]
    assert after.findings == ()
    assert numbers(notebook.names)["y"][0] == pytest.approx(before["y"][0])


def one(*edits: Edit, title: str = "fix", note: str = "") -> CheckFinding:
    reruns = tuple(Rerun(edit.cell, None, edit.after) for edit in edits)
    return CheckFinding(Diagnosis("", "", "", fixes=(Fix(title, "edit", edits, None, reruns, note, checked=True),)))


class TestTogether:
    TEXT = "a\nb\nc\nd"

    def edit(self, after: str, cell: int = 1) -> Edit:
        return Edit(self.TEXT, after, cell)

    def test_lines_of_both(self) -> None:
        fix = all_at_once([one(self.edit("A\nb\nc\nd")), one(self.edit("a\nb\nc\nD\nE"))])
        assert fix is not None
        assert [edit.after for edit in fix.edits] == ["A\nb\nc\nD\nE"]
        assert [again.source for again in fix.rerun] == ["A\nb\nc\nD\nE"]

    def test_two_insertions_at_one_place_stand_in_order(self) -> None:
        fix = all_at_once([one(self.edit("a\n1\nb\nc\nd")), one(self.edit("a\n2\nb\nc\nd"))])
        assert fix is not None
        assert fix.edits[0].after == "a\n1\n2\nb\nc\nd"

    def test_the_same_change_is_made_once(self) -> None:
        fix = all_at_once([one(self.edit("A\nb\nc\nd")), one(self.edit("A\nb\nC\nd"))])
        assert fix is not None
        assert fix.edits[0].after == "A\nb\nC\nd"

    def test_what_does_not_fit_together_is_left(self) -> None:
        findings = [one(self.edit("A\nb\nc\nd")), one(self.edit("X\nb\nc\nd")), one(self.edit("a\nB\nc\nd"))]
        fix = all_at_once(findings)
        assert fix is not None
        assert fix.edits[0].after == "A\nB\nc\nd"
        assert "1 of 3 need a fix of their own" in fix.note

    def test_cells_run_in_order(self) -> None:
        fix = all_at_once([one(Edit("x", "X", 3)), one(Edit("y", "Y", 2))])
        assert fix is not None
        assert [again.cell for again in fix.rerun] == [2, 3]

    def test_one_finding_needs_none(self) -> None:
        assert all_at_once([one(self.edit("A\nb\nc\nd"))]) is None
        assert all_at_once([]) is None


def test_fixes_are_numbered_without_gaps(notebook: Notebook) -> None:
    notebook.run(MODEL)
    report = notebook.check(CELL).report
    shown = [int(number) for number in re.findall(r"%devicefix (\d+)", show.text(report))]
    assert shown == list(range(1, len(shown) + 1))
    assert [int(number) for number in re.findall(r'<li value="(\d+)"', show.html(report))] == shown
    assert len(report.fixes) > len(shown)  # further ones follow
    for finding in report.findings:
        assert all(fix in report.fixes for fix in finding.diagnosis.fixes)


def test_findings_of_one_line_stand_together_below_it(notebook: Notebook) -> None:
    notebook.run("x = torch.randn(4, device=device)")
    cell = "p = torch.ones(4)\nq = torch.ones(4)\nfor w in (p, x):\n    y = x + w\n    z = x * p + x * q\nv = x - q\n"
    report = notebook.check(cell).report
    text = show.text(report)
    assert [finding.line[2] for finding in report.findings] == sorted(finding.line[2] for finding in report.findings)
    assert text.count("z = x * p + x * q") <= 1
    notebook.run("a, b = torch.ones(4), torch.zeros(4)")
    report = notebook.check("y = x + 1\nr = x * a + x * b\n").report
    assert len(report.findings) == 2
    text = show.text(report)
    code = text.index("r = x * a + x * b")
    assert text.count("r = x * a + x * b") == 1
    assert text[code:].split("why")[0].count("cpu") == 2  # both are marked


def test_one_fix_that_mends_two_findings_is_not_told_twice(notebook: Notebook) -> None:
    notebook.run("x = torch.randn(4, device=device)")
    report = notebook.check("p = torch.ones(4); q = torch.ones(4)\nr = x * p + x * q\n").report
    assert len(report.findings) == 2
    assert report.together is None or len(report.together.title.split(";")) == 2


def test_where_a_cell_ends_with_it_the_panel_is_shown(notebook: Notebook) -> None:
    notebook.run(MODEL)
    report = notebook.check(CELL).report
    text = notebook.run("report").text
    assert "2 device mistakes" in text and "CheckReport(" not in text
    assert report._repr_html_() == show.html(report)


def test_functions_of_virtual_cards_are_none_of_the_users(notebook: Notebook) -> None:
    notebook.run("x = torch.randn(4, device=device)")
    report = notebook.check("z = torch.cat([x, torch.zeros(2)])\ny = x + torch.tensor([1.0])").report
    assert len(report.findings) == 2
    assert "virtual" not in show.text(report)
    assert not any(edit.file for fix in report.fixes for edit in fix.edits)
