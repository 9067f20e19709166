"""`ipydevice demo`: cells that fail in a real shell, their panels, and the same cells running with the fix."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from ipydevice.cli import main
from ipydevice.cli.demo import STORIES

ROOT = Path(__file__).parents[2]


def test_each_story_ends_with_a_cell_that_runs(tmp_path: Path) -> None:
    ended = subprocess.run(
        [sys.executable, "-m", "ipydevice", "demo"], cwd=tmp_path, capture_output=True, text=True, check=False,
        env={**os.environ, "PYTHONPATH": str(ROOT), "HOME": str(tmp_path), "IPYTHONDIR": str(tmp_path / "ipython")},
    )  # fmt: skip
    assert ended.returncode == 0, ended.stderr
    assert not ended.stderr
    stories = re.split(r"^── ", ended.stdout, flags=re.MULTILINE)[1:]
    assert [story.partition(":")[0] for story in stories] == [story.name for story in STORIES]
    for story in stories:
        assert story.count("Traceback (most recent call last)") == 1
        assert story.count("✗") == 1
        assert "%devicefix 1" in story
        assert story.index("✗") < story.rindex("In [")
    assert list(tmp_path.iterdir()) == []


def test_stories_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["demo", "--list"]) == 0
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == [story.name for story in STORIES]
    assert main(["demo", "nothing"]) == 2
    assert "--list" in capsys.readouterr().err
