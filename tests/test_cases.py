"""The corpus of failing notebooks: each is sound, and what is right may only grow.

IPYDEVICE_CASES names further folders of cases; they are run and printed too, without a pin.
IPYDEVICE_REGEN=1 raises the pins to what was reached.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
RUNNER = HERE / "case_runner.py"
OWN = HERE / "cases"
PINS = OWN / "pins.json"
GIVEN = [f for f in os.environ.get("IPYDEVICE_CASES", "").split(os.pathsep) if f]


def runner(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(HERE.parent)}
    return subprocess.run(
        [sys.executable, RUNNER, *map(str, arguments)], capture_output=True, text=True, env=environment, check=False
    )


def test_own_cases_are_sound() -> None:
    checked = runner(OWN, "--check-cases")
    print(checked.stdout)
    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_own_cases_only_get_better(tmp_path: Path) -> None:
    verdicts = tmp_path / "verdicts.json"
    run = runner(OWN, "--json", verdicts)
    print(run.stdout)
    assert run.returncode == 0, run.stderr
    reached = json.loads(verdicts.read_text())["totals"]
    pinned = json.loads(PINS.read_text()) if PINS.exists() else {}
    if os.environ.get("IPYDEVICE_REGEN"):
        best = {name: max(count, pinned.get(name, 0)) for name, count in reached.items() if name in PINNED}
        PINS.write_text(json.dumps(best, indent=1) + "\n")
    worse = {name: (count, reached[name]) for name, count in pinned.items() if reached[name] < count}
    assert not worse, f"pinned and reached differ: {worse}\n{run.stdout}"


PINNED = ("point 1", "point 2", "point 3", "points 1-3", "points 4-5", "one of three fixes", "all five")


@pytest.mark.skipif(not GIVEN, reason="IPYDEVICE_CASES names no folder")
def test_given_cases_fail_with_the_error_of_pytorch(tmp_path: Path) -> None:
    verdicts = tmp_path / "verdicts.json"
    run = runner(*GIVEN, "--json", verdicts)
    print(run.stdout)
    assert run.returncode == 0, run.stderr
    totals = json.loads(verdicts.read_text())["totals"]
    assert totals["point 1"] == totals["cases"], run.stdout
