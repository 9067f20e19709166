"""Wrong input of every kind: one clear line on standard error, exit code 2, and nothing of the input is changed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

import pytest

from ipydevice.cli import COMMANDS, inputs, main

ROOT = Path(__file__).parents[2]
BOOK = {"cells": [], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
BAD_BOOKS = {
    "empty": b"",
    "blank": b"  \n ",
    "binary": bytes(range(256)) * 4,
    "cut": json.dumps(BOOK).encode()[:-10],
    "a list": b"[]",
    "a number": b"3",
    "no cells": b'{"metadata": {}, "nbformat": 4, "nbformat_minor": 5}',
    "format 7": json.dumps({**BOOK, "nbformat": 7}).encode(),
    "cells are no list": json.dumps({**BOOK, "cells": 3}).encode(),
    "a cell is a text": json.dumps({**BOOK, "cells": ["x"]}).encode(),
    "a cell without source": json.dumps({**BOOK, "cells": [{"cell_type": "code"}]}).encode(),
    "deep": b'{"cells": ' + b"[" * 100_000,
    "another encoding": '{"cells": "ü"}'.encode("latin-1"),
    "utf-16": json.dumps(BOOK).encode("utf-16"),
    "conflict": b"<<<<<<< HEAD\n" + json.dumps(BOOK).encode(),
}


def refused(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    assert main(arguments) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    (line,) = captured.err.splitlines()
    assert line.startswith(f"ipydevice {arguments[0]}: ")
    return line


@pytest.mark.parametrize("name", BAD_BOOKS)
@pytest.mark.parametrize("options", [["--in-place"], ["--diff"], []])
def test_fix(name: str, options: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "a.ipynb"
    file.write_bytes(BAD_BOOKS[name])
    refused(["fix", str(file), *options], capsys)
    assert file.read_bytes() == BAD_BOOKS[name]
    assert os.listdir(tmp_path) == ["a.ipynb"]


@pytest.mark.parametrize("name", [name for name in BAD_BOOKS if name != "utf-16"])
def test_explain(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "a.ipynb"
    file.write_bytes(BAD_BOOKS[name])
    refused(["explain", str(file)], capsys)


BINARY = {
    "binary": bytes(range(256)) * 4,
    "a pickle": b"\x80\x02}q\x00.",
    "a ZIP archive": b"PK\x03\x04" + b"\0" * 40,
    "a picture": b"\x89PNG\r\n" + b"\0" * 40,
    "UTF-16": "import torch\n".encode("utf-16"),
}


@pytest.mark.parametrize("command", ["explain", "fix", "run", "lint"])
@pytest.mark.parametrize("kind", BINARY)
def test_what_is_no_text_is_told_with_what_is_wanted(
    command: str, kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What was given, what is read, and what to do."""
    if (command, kind) == ("explain", "UTF-16"):
        pytest.skip("logs of Windows are read")
    file = tmp_path / "a.py"
    file.write_bytes(BINARY[kind])
    said = refused([command, str(file)], capsys)
    assert kind in said
    wanted = {"explain": "a notebook, a log or a traceback", "fix": "a notebook (.ipynb)", "run": "a Python program",
              "lint": "a Python program or a notebook (.py, .pyi, .ipynb)"}[command]  # fmt: skip
    assert f"{wanted} in UTF-8 is read; " in said


def test_a_program_in_another_encoding(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "a.py"
    file.write_bytes("x = 'ü'  # torch".encode("latin-1"))
    assert "declares no encoding; save it as UTF-8" in refused(["lint", str(file)], capsys)


def test_an_archive_runs_as_in_python(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "app.pyz", "w") as app:
        app.writestr("__main__.py", "print('runs')")
    run = subprocess.run(
        [sys.executable, "-m", "ipydevice", "run", str(tmp_path / "app.pyz")],
        capture_output=True, text=True, check=False, env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert (run.returncode, run.stdout) == (0, "runs\n"), run.stderr


@pytest.mark.parametrize("command", ["explain", "fix", "run", "lint"])
def test_missing(command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "no such file" in refused([command, str(tmp_path / "missing.py")], capsys)


@pytest.mark.parametrize("command", ["explain", "fix", "run"])
def test_folder(command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "is a folder" in refused([command, str(tmp_path)], capsys)


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may read everything")
def test_no_permission(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "a.log"
    file.write_text("x")
    file.chmod(0)
    assert "no permission" in refused(["explain", str(file)], capsys)


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root may become somebody else")
@pytest.mark.parametrize("command", ["explain", "fix", "lint"])
def test_no_permission_as_somebody_else(command: str) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        file = folder / "a.ipynb"
        file.write_text("{}")
        file.chmod(0)
        code = (
            f"import os; from ipydevice.cli import explain, fix, lint, main\nos.setuid(65534)\n"
            f"raise SystemExit(main([{command!r}, {str(file)!r}]))"
        )
        env = {**os.environ, "PYTHONPATH": str(ROOT)}
        ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, env=env)
    (line,) = ended.stderr.splitlines()
    assert ended.returncode == 2
    assert "ermission" in line


def test_what_is_wrong_in_a_notebook_is_told_with_its_place(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "a.ipynb"
    cell = {"cell_type": "code", "execution_count": None, "id": "a", "metadata": {}, "outputs": [], "source": 3}
    file.write_text(json.dumps({**BOOK, "cells": [cell]}))
    assert "(cells/0/source)" in refused(["fix", str(file)], capsys)


def test_too_large(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "a.ipynb"
    with file.open("wb") as sparse:
        sparse.truncate(inputs.LARGEST + 1)  # no byte of it is read
    assert "200 MB" in refused(["explain", str(file)], capsys)


def test_a_loop_of_links(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    loop = tmp_path / "a.ipynb"
    loop.symlink_to(loop)
    refused(["fix", str(loop)], capsys)


def test_other_languages(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "a.ipynb"
    file.write_text(
        json.dumps({**BOOK, "metadata": {"kernelspec": {"name": "r", "display_name": "R", "language": "R"}}})
    )
    assert "a notebook of r" in refused(["fix", str(file)], capsys)


@pytest.mark.parametrize("arguments", [["nonsense"], ["fix"], ["run"], ["lint", "--output-format", "xml"], ["--wrong"]])
def test_wrong_command_lines(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "--help" in line


@pytest.mark.parametrize("command", COMMANDS)
def test_help_shows_examples(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main([command, "--help"])
    assert ended.value.code == 0
    assert f"examples:\n  ipydevice {command}" in capsys.readouterr().out
