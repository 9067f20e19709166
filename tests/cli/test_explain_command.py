"""`ipydevice explain`: notebooks, logs, standard input, the catalogue."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from pathlib import Path

import pytest

from ipydevice import postmortem
from ipydevice.cli import main

ROOT = Path(__file__).parents[2]
CELLS = [
    "import torch, ipydevice\nfrom torch import nn\nipydevice.virtual_gpus(1).enable()\ndevice = torch.device('cuda')",
    "class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.fc = nn.Linear(4, 2)\n"
    "    def forward(self, x):\n        return self.fc(x)",
    "net = Net()",
    "x = torch.zeros(3, 4, device=device)\nnet(x)",
]


@pytest.fixture(scope="module")
def executed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A notebook that nbclient has run, with its error in it."""
    import nbformat
    from nbclient import NotebookClient

    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source) for source in CELLS])
    client = NotebookClient(book, allow_errors=True, kernel_name="python3", timeout=240)
    client.execute()
    path = tmp_path_factory.mktemp("executed") / "executed.ipynb"
    nbformat.write(book, path)
    return path


def test_executed_notebook(executed: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", str(executed), "--json"]) == 0
    (told,) = json.loads(capsys.readouterr().out)
    assert told["cause"] == "model_not_moved"
    assert told["culprit"]["device"] == "cpu"
    assert told["other"]["expression"] == "x"
    assert (told["failed"]["cell"], told["failed"]["line"]) == (2, 6)
    assert told["confidence"] in ("likely", "guess")
    assert told["fixes"][0]["edits"][0]["after"] == "net = Net().to(device)"


def test_page(executed: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", str(executed), "--html"]) == 0
    page = capsys.readouterr().out
    assert page.startswith("<!doctype html>")
    assert "self.fc" in page
    assert "<script" not in page


def test_standard_input_needs_no_torch() -> None:
    text = (ROOT / "tests" / "text" / "pasted" / "colab.txt").read_text()
    code = "import sys; sys.modules['torch'] = None\nfrom ipydevice.cli import main\nsys.exit(main(['explain', '-']))"
    run = subprocess.run(
        [sys.executable, "-c", code], input=text, capture_output=True, text=True, cwd=ROOT, check=False
    )
    assert run.returncode == 0, run.stderr
    assert "labels is on cpu, logits is on cuda:0" in run.stdout
    assert "%devicefix" not in run.stdout  # there is no session to type it into


def test_ranks_are_told_once(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", str(ROOT / "tests" / "text" / "pasted" / "torchrun.txt")]) == 0
    out = capsys.readouterr().out
    assert out.startswith("rank 0, rank 1:\n")
    assert out.count("✗") == 1


def test_catalogue(capsys: pytest.CaptureFixture[str]) -> None:
    from ipydevice.messages import catalogue

    assert main(["explain", "--list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "common_check"
    assert lines[1].startswith("  mostly  ") and lines[2].startswith("  do      ")
    listed = [line.split()[0] for line in lines if line.startswith(("  PT", "  LB"))]
    assert sorted(listed) == sorted(entry.id for entry in catalogue())
    flat = " ".join(" ".join(lines).split())
    assert all(entry.meaning in flat for entry in catalogue())
    assert all(len(line) <= 100 for line in lines)


def test_catalogue_as_data(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "--list", "--json"]) == 0
    rows = {row["id"]: row for row in json.loads(capsys.readouterr().out)}
    assert rows["PT090"]["usual_cause"].startswith("a tensor on the card goes to NumPy")
    assert rows["PT090"]["what_to_do"]


@pytest.mark.parametrize("given", ["PT001", "pt001"])
def test_one_message(given: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", given]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert out.startswith("PT001 common_check says Expected all tensors to be on the same device, but got … is on …")
    assert "(PyTorch 2.8 and later) means an op checked its arguments" in out
    assert "do Move the whole batch in one place" in out


def test_every_message_by_its_id(capsys: pytest.CaptureFixture[str]) -> None:
    from ipydevice.messages import catalogue

    for entry in catalogue():
        assert main(["explain", entry.id]) == 0
        out = capsys.readouterr().out
        assert out.startswith(f"{entry.id}  {entry.family}\n")
        assert entry.meaning in " ".join(out.split())
        assert all(len(line) <= 100 for line in out.splitlines())
        assert main(["explain", entry.id, "--json"]) == 0
        found = json.loads(capsys.readouterr().out)
        assert found["id"] == entry.id
        assert found["texts"]
        assert not any("{" in said["text"] and "}" in said["text"] for said in found["texts"]), found["texts"]


def test_a_message_that_is_not_there(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "PT999"]) == 2
    said = capsys.readouterr().err
    assert "there is no message 'PT999', and no such file; ipydevice explain --list has all ids" in said


def test_a_file_of_such_a_name_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "PT001").write_text("nothing here")
    monkeypatch.chdir(tmp_path)
    assert main(["explain", "PT001"]) == 1
    assert "no device error in PT001" in capsys.readouterr().err


def test_no_device_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "a.log"
    file.write_text(
        'Traceback (most recent call last):\n  File "a.py", line 3, in f\n    1 / 0\nZeroDivisionError: zero\n'
    )
    assert main(["explain", str(file)]) == 1
    assert capsys.readouterr().err == f"no device error in {file} (it shows ZeroDivisionError)\n"


def test_a_worker_s_error_alive_is_read_from_its_text() -> None:
    """No frame of the user's is left in this process: those that the worker's text shows are used."""
    text = (ROOT / "tests" / "text" / "pasted" / "dataparallel_replica.txt").read_text()
    found = postmortem.begin(RuntimeError(text[text.index("Caught") :]))
    assert found is not None
    diagnosis = found.finish()
    assert diagnosis.failed.source == "return torch.cdist(x, self.anchors)"
    assert diagnosis.culprit is not None
    assert diagnosis.culprit.expression == "self.anchors"
    assert diagnosis.confidence == "guess"


def test_through_a_pipe_that_closes() -> None:
    run = subprocess.run(
        f"{sys.executable} -m ipydevice explain --list | head -n 1",
        shell=True,
        capture_output=True,
        text=True,
        cwd=ROOT,
        check=False,
    )
    assert run.stdout == "common_check\n"
    assert "Traceback" not in run.stderr


def test_stdin_that_is_empty(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"")))
    assert main(["explain", "-"]) == 2
    assert capsys.readouterr().err == (
        "ipydevice explain: standard input is empty; a notebook, a log or a traceback is read\n"
    )


TIMED = [
    CELLS[0],
    "def step(x):\n    return x * torch.ones(3)\n\nx = torch.zeros(3, device=device)",
    "%%time\n\nx + torch.ones(3)\nprint(1)",
    "%%time\nstep(x)",
    "y = 1\n%time step(x)",
    "%%capture\ny = 2\nx + torch.ones(3)",
    "%%timeit -n1 -r1\ny = 3\nx + torch.ones(3)",
    "def step(x):\n    return 2 * x",
]


def test_lines_under_magics_are_those_that_were_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """IPython runs the body of a magic's cell as a file of its own, and prints its lines; each error knows its past."""
    import nbformat
    from nbclient import NotebookClient

    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source) for source in TIMED])
    NotebookClient(book, allow_errors=True, kernel_name="python3", timeout=240).execute()
    path = tmp_path / "timed.ipynb"
    nbformat.write(book, path)
    assert main(["explain", str(path), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert [(one["failed"]["cell"], one["failed"]["line"]) for one in told] == [(3, 3), (2, 2), (2, 2), (6, 3), (7, 3)]
    assert all(one["cause"] == "fresh_tensor_no_device" for one in told)
    assert [one["fixes"][0]["rerun"][-1]["cell"] for one in told] == [3, 4, 5, 6, 7]
