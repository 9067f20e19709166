"""`ipydevice fix`: the right cells change and not a byte else; a killed process leaves the old file or the new."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from ipydevice.cli import main
from ipydevice.notebook_files import NotebookFile, write

ROOT = Path(__file__).parents[2]
TRACEBACK = """---------------------------------------------------------------------------
RuntimeError                              Traceback (most recent call last)
Cell In[3], line 1
----> 1 y = scale(torch.zeros(4, device=device))

Cell In[2], line 3, in scale(x)
      1 def scale(x):
      2     factors = torch.ones(x.shape[0])
----> 3     return x * factors

RuntimeError: Expected all tensors to be on the same device, but found at least two devices, cuda:0 and cpu!"""
SOURCES = [
    "import torch\ndevice = torch.device('cuda')",
    "def scale(x):\n    factors = torch.ones(x.shape[0])\n    return x * factors",
    "y = scale(torch.zeros(4, device=device))",
]
FIXED = "def scale(x):\n    factors = torch.ones(x.shape[0], device=x.device)\n    return x * factors"


def book(*, as_lines: bool = True, minor: int = 5, **more: Any) -> dict[str, Any]:
    def told(source: str) -> Any:
        return source.splitlines(keepends=True) if as_lines else source

    cells: list[dict[str, Any]] = [
        {"cell_type": "markdown", "id": "m", "metadata": {"x": 1.0}, "source": told("# Täst ![a](attachment:a.png)"),
         "attachments": {"a.png": {"image/png": "QUJD"}}},
    ]  # fmt: skip
    for number, source in enumerate(SOURCES, 1):
        outputs: list[dict[str, Any]] = []
        if number == 3:
            message = TRACEBACK.splitlines()[-1].partition(": ")[2]
            outputs = [
                {
                    "output_type": "error",
                    "ename": "RuntimeError",
                    "evalue": message,
                    "traceback": TRACEBACK.splitlines(),
                }
            ]
        cells.append({"cell_type": "code", "execution_count": number, "id": f"c{number}", "metadata": {"tags": ["t"]},
                      "outputs": outputs, "source": told(source)})  # fmt: skip
    if minor < 5:
        for cell in cells:
            del cell["id"]
    return {"cells": cells, "metadata": {"own": {"deep": [1, 2]}}, "nbformat": 4, "nbformat_minor": minor, **more}


FORMATS = {
    "as nbformat writes": lambda: json.dumps(book(), indent=1, ensure_ascii=False) + "\n",
    "one line": lambda: json.dumps(book()),
    "sources as texts": lambda: json.dumps(book(as_lines=False), indent=2, ensure_ascii=True),
    "four blanks, sorted": lambda: json.dumps(book(), indent=4, sort_keys=True),
    "tabs": lambda: json.dumps(book(), indent="\t"),
    "windows": lambda: json.dumps(book(), indent=1).replace("\n", "\r\n"),
    "no ids": lambda: json.dumps(book(minor=4), indent=1),
    "oldest of 4": lambda: json.dumps(book(minor=0), indent=1),
}


@pytest.mark.parametrize("form", FORMATS)
def test_only_the_cell_changes(form: str, tmp_path: Path) -> None:
    before = FORMATS[form]()
    file = tmp_path / "a.ipynb"
    file.write_bytes(before.encode())
    assert main(["fix", str(file), "--in-place"]) == 0
    after = file.read_bytes().decode()
    assert (tmp_path / "a.ipynb.bak").read_bytes() == before.encode()
    old, new = json.loads(before), json.loads(after)
    assert "".join(new["cells"][2]["source"]) == FIXED
    assert type(new["cells"][2]["source"]) is type(old["cells"][2]["source"])
    new["cells"][2]["source"] = old["cells"][2]["source"]
    assert new == old
    added = ", device=x.device"
    assert after.replace(added, "", 1) == before  # nothing but these characters


def test_third_format(tmp_path: Path) -> None:
    error = {"output_type": "pyerr", "ename": "RuntimeError", "evalue": "x", "traceback": TRACEBACK.splitlines()}
    cells = [
        {"cell_type": "code", "collapsed": False, "input": source, "language": "python", "metadata": {},
         "outputs": [error] if number == 3 else [], "prompt_number": number}
        for number, source in enumerate(SOURCES, 1)
    ]  # fmt: skip
    error["evalue"] = TRACEBACK.splitlines()[-1].partition(": ")[2]
    text = json.dumps(
        {
            "metadata": {"name": "a"},
            "nbformat": 3,
            "nbformat_minor": 0,
            "worksheets": [{"cells": cells, "metadata": {}}],
        }
    )
    file = tmp_path / "a.ipynb"
    file.write_text(text)
    assert main(["fix", str(file), "-o", str(tmp_path / "b.ipynb")]) == 0
    assert (tmp_path / "b.ipynb").read_text() == text.replace("shape[0])", "shape[0], device=x.device)", 1)
    assert file.read_text() == text


def test_difference(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "a.ipynb"
    file.write_text(FORMATS["one line"]())
    assert main(["fix", str(file), "--diff"]) == 0
    assert "+    factors = torch.ones(x.shape[0], device=x.device)\n" in capsys.readouterr().out
    assert file.read_text() == FORMATS["one line"]()


def test_nothing_to_fix_writes_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "a.ipynb"
    clean = book()
    clean["cells"] = clean["cells"][:1]
    file.write_text(json.dumps(clean))
    assert main(["fix", str(file), "--in-place"]) == 0
    assert "nothing to fix" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["a.ipynb"]


def test_twice_is_once(tmp_path: Path) -> None:
    file = tmp_path / "a.ipynb"
    file.write_text(FORMATS["tabs"]())
    main(["fix", str(file), "--in-place"])
    once = file.read_bytes()
    main(["fix", str(file), "--in-place"])
    assert file.read_bytes() == once


def test_a_guess_is_not_taken_unasked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    unsure = book()
    unsure["cells"][2]["source"] = [
        "def scale(x, factors=None):\n",
        "    factors = make(x)\n",
        "    return x * factors",
    ]
    for output in unsure["cells"][3]["outputs"]:
        shown = "\n".join(output["traceback"]).replace("torch.ones(x.shape[0])", "make(x)")
        output["traceback"] = shown.replace("scale(x):", "scale(x, factors=None):").splitlines()
    file = tmp_path / "a.ipynb"
    file.write_text(json.dumps(unsure))
    before = file.read_bytes()
    assert main(["fix", str(file), "--in-place"]) == 1
    assert "ipydevice explain" in capsys.readouterr().err
    assert file.read_bytes() == before


def test_links_and_permissions_stay(tmp_path: Path) -> None:
    file, link = tmp_path / "a.ipynb", tmp_path / "link.ipynb"
    file.write_text(FORMATS["tabs"]())
    file.chmod(0o640)
    link.symlink_to(file)
    assert main(["fix", str(link), "--in-place"]) == 0
    assert link.is_symlink()
    assert file.stat().st_mode & 0o777 == 0o640
    assert "device=x.device" in file.read_text()


def test_a_folder_that_cannot_be_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "a.ipynb"
    file.write_text(FORMATS["tabs"]())
    assert main(["fix", str(file), "-o", str(tmp_path / "missing" / "b.ipynb")]) == 2
    assert "cannot be written" in capsys.readouterr().err


def test_a_killed_process_leaves_the_old_file_or_the_new(tmp_path: Path) -> None:
    file = tmp_path / "a.ipynb"
    old, new = b"o" * 5_000_000, b"n" * 5_000_000
    code = (
        "import pathlib, sys\nfrom ipydevice.notebook_files import write\nprint('ready', flush=True)\n"
        f"file = pathlib.Path({str(file)!r})\n"
        "while True:\n    write(file, b'n' * 5_000_000)\n    write(file, b'o' * 5_000_000)"
    )
    for wait in (0.0, 0.01, 0.03, 0.05, 0.08):
        write(file, old)
        process = subprocess.Popen([sys.executable, "-c", code], cwd=ROOT, stdout=subprocess.PIPE)
        assert process.stdout is not None
        process.stdout.readline()
        time.sleep(wait)
        process.send_signal(signal.SIGKILL)
        process.wait()
        process.stdout.close()
        assert file.read_bytes() in (old, new)


def test_edit_of_a_cell_that_is_no_notebook_any_more_is_refused() -> None:
    text = FORMATS["one line"]()
    with_surrogate = NotebookFile.read(text, "a.ipynb").with_sources({2: "x = '\\ud800'"})
    assert with_surrogate.cells[1].source == "x = '\\ud800'"
