"""Each rule on programs that break it and programs that only look like it.

A line that ends in ``# here`` breaks the rule after which its file is named; ``# IPD010`` names another.
Fixed texts stand beside the programs; IPYDEVICE_REGEN=1 rewrites them.
"""

from __future__ import annotations

import ast
import os
import re
import sysconfig
from pathlib import Path

import pytest

from ipydevice import lint
from ipydevice.lint import RULES, Settings
from ipydevice.lint import rules as _rules  # noqa: F401  # fills RULES

HERE = Path(__file__).parent
CASES = sorted((HERE / "cases").glob("*.py"))
PROGRAMS = sorted((HERE.parent / "programs").glob("*.py"))


def expected(path: Path, text: str) -> list[tuple[int, str]]:
    found = []
    for number, line in enumerate(text.splitlines(), 1):
        marks = re.findall(r"\bhere\b|IPD\d+", line.partition("# ")[2]) if not line.startswith("#") else []
        found += [(number, path.stem[:6] if mark == "here" else mark) for mark in marks]
    return found


def settings(text: str) -> Settings:
    return Settings(select=("ALL",)) if text.startswith("# select: ALL") else Settings()


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_rule(path: Path) -> None:
    text = path.read_text()
    report = lint.check(text, str(path), settings(text))
    assert [(note.spot.line, note.rule) for note in report.notes] == expected(path, text)


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_fixed(path: Path) -> None:
    text = path.read_text()
    report = lint.fixed(text, str(path), settings(text))
    golden = path.with_suffix(".fixed")
    if os.environ.get("IPYDEVICE_REGEN"):
        golden.write_text(report.text or "") if report.text else golden.unlink(missing_ok=True)
    assert report.text == (golden.read_text() if golden.exists() else None)
    assert not any(note.fixable for note in report.notes)  # nothing is left undone
    if report.text is not None:
        ast.parse(report.text)
        assert lint.fixed(report.text, str(path), settings(text)).text is None


def test_every_rule_is_tried() -> None:
    tried = {mark for path in CASES for _, mark in expected(path, path.read_text())}
    assert tried == set(RULES)


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_silent_on_programs_that_run(path: Path) -> None:
    assert lint.check(path.read_text(), str(path), Settings()).notes == []


def test_silent_on_the_sources_of_torch_nn() -> None:
    folder = Path(sysconfig.get_paths()["purelib"]) / "torch" / "nn"
    lines, found = 0, []
    for path in sorted(folder.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        lines += text.count("\n")
        found += lint.check(text, str(path), Settings()).notes
    assert lines > 10_000
    assert found == []
