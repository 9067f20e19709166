"""The corpus of failing notebooks: each is sound, and what is right in one stays right.

Quick runs take every thirteenth notebook, slow ones all.  Those of ``blind`` were written by somebody who had not read
the code.  IPYDEVICE_CASES names further folders of cases; they are run and printed too, without a pin.
IPYDEVICE_REGEN=1 adds to the pins what was reached.
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
PINS = OWN / "pins.json"  # notebook -> the points of its README that were right once
GIVEN = [f for f in os.environ.get("IPYDEVICE_CASES", "").split(os.pathsep) if f]
BLIND = OWN / "blind"
ALL = sorted([*OWN.glob("[0-9]*.py"), *BLIND.glob("[0-9]*.py")], key=lambda file: file.name)
SAMPLE = ALL[::13]


def runner(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(HERE.parent)}
    return subprocess.run(
        [sys.executable, RUNNER, *map(str, arguments)], capture_output=True, text=True, env=environment, check=False
    )


def judged(files: list[Path], tmp_path: Path) -> tuple[dict[str, list[int]], str]:
    """The points that are right, by notebook, and what the runner printed."""
    verdicts = tmp_path / "verdicts.json"
    run = runner(*files, "--json", verdicts)
    print(run.stdout)
    assert run.returncode == 0, run.stdout + run.stderr
    told = json.loads(verdicts.read_text())["verdicts"]
    return {v["name"]: [int(point) for point, wrong in v["points"].items() if not wrong] for v in told}, run.stdout


def stays_right(files: list[Path], tmp_path: Path) -> None:
    reached, printed = judged(files, tmp_path)
    pinned: dict[str, list[int]] = json.loads(PINS.read_text()) if PINS.exists() else {}
    if os.environ.get("IPYDEVICE_REGEN"):
        best = {name: sorted({*points, *pinned.get(name, [])}) for name, points in reached.items()}
        lines = [f' "{name}": {json.dumps(points)}' for name, points in sorted({**pinned, **best}.items())]
        PINS.write_text("{\n" + ",\n".join(lines) + "\n}\n")
    lost = {name: sorted(set(pinned.get(name, [])) - set(points)) for name, points in reached.items()}
    assert not any(lost.values()), f"right once, wrong now: {[item for item in lost.items() if item[1]]}\n{printed}"


@pytest.mark.slow
def test_own_cases_are_sound() -> None:
    checked = runner(OWN, BLIND, "--check-cases")
    print(checked.stdout)
    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_a_sample_stays_right(tmp_path: Path) -> None:
    stays_right(SAMPLE, tmp_path)


@pytest.mark.slow
def test_all_stay_right(tmp_path: Path) -> None:
    stays_right(ALL, tmp_path)


@pytest.mark.skipif(not GIVEN, reason="IPYDEVICE_CASES names no folder")
def test_given_cases_fail_with_the_error_of_pytorch(tmp_path: Path) -> None:
    reached, printed = judged([Path(folder) for folder in GIVEN], tmp_path)
    assert all(1 in points for points in reached.values()), printed
