"""`ipydevice enable` and `disable`: new shells load the extension, and the profile is as it was afterwards."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from ipydevice.cli import main
from ipydevice.cli.startup import NAME, TEXT


@pytest.fixture
def profile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path))
    return tmp_path / "profile_default"


def test_new_shells_load_it(profile: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["enable"]) == 0
    file = profile / "startup" / NAME
    shown = capsys.readouterr().out
    assert str(file) in shown
    assert all(line in shown for line in TEXT.splitlines())
    code = "print('ipydevice' in get_ipython().extension_manager.loaded)"
    root = str(Path(__file__).parents[2])
    run = subprocess.run(
        [sys.executable, "-m", "IPython", "--no-banner", "-c", code],
        capture_output=True, text=True, check=False, env={**os.environ, "PYTHONPATH": root},
    )  # fmt: skip
    assert run.stdout.splitlines()[-1] == "True", run.stderr
    assert main(["disable"]) == 0
    assert not file.exists()


def test_twice(profile: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["enable"])
    assert main(["enable"]) == 0
    assert "already enabled" in capsys.readouterr().out
    main(["disable"])
    assert main(["disable"]) == 0
    assert "not enabled" in capsys.readouterr().out


def test_dry_run(profile: Path) -> None:
    assert main(["enable", "--dry-run"]) == 0
    assert not (profile / "startup" / NAME).exists()
    main(["enable"])
    assert main(["disable", "--dry-run"]) == 0
    assert (profile / "startup" / NAME).exists()


def test_what_others_wrote_is_left_alone(profile: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["enable"])
    file = profile / "startup" / NAME
    file.write_text(TEXT + "import torch\n")
    assert main(["disable"]) == 1
    assert main(["enable"]) == 2
    assert file.read_text() == TEXT + "import torch\n"
    assert "changed since" in capsys.readouterr().err


def test_unknown_profiles(profile: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("research", "../elsewhere"):
        assert main(["enable", "--profile", name]) == 2
        (line,) = capsys.readouterr().err.splitlines()
        assert name in line
