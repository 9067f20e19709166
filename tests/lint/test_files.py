"""Notebooks, silencing, settings, which files are meant, outputs."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from ipydevice import lint
from ipydevice.cli import main
from ipydevice.input_error import InputError
from ipydevice.lint import Settings

BAD = "import torch\nstate = torch.load('a.pt')\n"
MODEL = """import torch
from torch import nn
class Net(nn.Module):
    def forward(self, x):
        return x * torch.ones(x.shape)"""


def notebook(*sources: str, language: str = "python") -> str:
    cells = [
        {"cell_type": "code", "execution_count": n, "id": f"c{n}", "metadata": {}, "outputs": [], "source": source}
        for n, source in enumerate(sources, 1)
    ]
    metadata = {"kernelspec": {"name": "k", "display_name": "k", "language": language}}
    return json.dumps({"cells": cells, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}, indent=1) + "\n"


def found(text: str, name: str = "a.py", settings: Settings | None = None) -> list[tuple[int | None, int, str]]:
    report = lint.check(text, name, settings or Settings())
    return [(note.spot.cell, note.spot.line, note.rule) for note in report.notes]


def test_cells_are_read_as_one_program() -> None:
    text = notebook("import torch\nopt = torch.optim.SGD(model.parameters(), 0.1)", "%timeit 1\nmodel.to('cuda')")
    assert found(text, "a.ipynb") == [(1, 2, "IPD003")]


def test_magics_and_other_languages_are_left_out() -> None:
    text = notebook(
        "%load_ext ipydevice\n!pip install \\\n  torch\nimport torch\nx = !ls\n"
        "y = %who_ls\ntorch.load?\ns = torch.load('a')",
        "%%bash\ntorch.load('a')",
        "%%time\nt = torch.load('a')",
        "/print 1",
        "pip install -q torch\ncd ..\nu = torch.load('a')",
    )
    assert found(text, "a.ipynb") == [(1, 8, "IPD002"), (3, 2, "IPD002"), (5, 3, "IPD002")]
    assert lint.check(text, "a.ipynb", Settings()).remarks == ["a.ipynb: cell 4 is no plain Python, it is skipped"]


def test_a_cell_that_does_not_parse_is_told_and_the_others_are_checked() -> None:
    text = notebook("import torch\nt = torch.load('a')", "x = 1\nthis is (no Python")
    assert found(text, "a.ipynb") == [(1, 2, "IPD002"), (2, 2, "SyntaxError")]


def test_notebooks_of_other_languages_are_not_read() -> None:
    report = lint.check(notebook("torch.load('a')", language="julia"), "a.ipynb", Settings())
    assert report.notes == []
    assert "julia" in report.remarks[0]


def test_fixes_keep_magics_and_every_other_byte() -> None:
    before = notebook(f"%matplotlib inline\n{MODEL}\n!ls", "%%time\n1 + 1", "# ünïcode\n'x'")
    after = lint.fixed(before, "a.ipynb", Settings()).text
    assert after is not None
    changed = [(old, new) for old, new in zip(before.splitlines(), after.splitlines(), strict=True) if old != new]
    ((old, new),) = changed
    assert "torch.ones(x.shape)" in old
    assert new == old.replace("torch.ones(x.shape)", "torch.ones(x.shape, device=x.device)")


@pytest.mark.parametrize(
    "comment",
    ["# noqa", "# noqa: IPD002", "# NOQA:IPD002", "# why: noqa  # noqa: E501, IPD002", "# noqa: IPD001 IPD002"],
)
def test_silenced(comment: str) -> None:
    assert found(f"import torch\nstate = torch.load('a.pt')  {comment}\n") == []


def test_silenced_elsewhere_counts_not() -> None:
    assert len(found("import torch\n# noqa\nstate = torch.load('a.pt')  # noqa: IPD001\n")) == 1


def test_silenced_at_the_end_of_a_long_call() -> None:
    assert found("import torch\nstate = torch.load(\n    'a.pt',\n)  # noqa: IPD002\n") == []


def project(folder: Path, table: str) -> None:
    (folder / "pyproject.toml").write_text(f"[tool.ipydevice.lint]\n{table}\n")
    (folder / "a.py").write_text(BAD)


@pytest.mark.parametrize(
    ("table", "code"),
    [
        ("", 1),
        ('ignore = ["IPD002"]', 0),
        ('ignore = ["IPD"]', 0),
        ('select = ["IPD004"]', 0),
        ('select = ["IPD004"]\nextend-select = ["IPD002"]', 1),
        ('exclude = ["a.py"]', 0),
        ('per-file-ignores = { "a.py" = ["IPD002"] }', 0),
        ('per-file-ignores = { "b.py" = ["IPD002"] }', 1),
    ],
)
def test_settings(table: str, code: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    project(tmp_path, table)
    assert main(["lint", str(tmp_path)]) == code, capsys.readouterr()


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ("selected = []", "no `selected`"),
        ('select = "IPD002"', "list"),
        ('select = ["IPD999"]', "no rule IPD999"),
        ("per-file-ignores = []", "table"),
        ("select = [", "cannot be read"),
    ],
)
def test_wrong_settings(table: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    project(tmp_path, table)
    assert main(["lint", str(tmp_path)]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert said in line


def test_command_line_over_settings(tmp_path: Path) -> None:
    project(tmp_path, 'ignore = ["IPD002"]')
    assert main(["lint", str(tmp_path), "--ignore", "IPD001"]) == 1
    assert main(["lint", str(tmp_path), "--select", "IPD999"]) == 2
    assert main(["lint", str(tmp_path), "--ignore", "IPD001", "--exit-zero"]) == 0


def test_ignored_files_are_not_meant(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    (tmp_path / ".gitignore").write_text("ignored/\n")
    for folder in ("ignored", "kept", ".venv"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "a.py").write_text(BAD)
    main(["lint", str(tmp_path), "--output-format", "json"])
    assert [Path(note["filename"]).parent.name for note in json.loads(capsys.readouterr().out)] == ["kept"]


def test_what_is_no_file_in_a_folder_is_not_meant(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    os.mkfifo(tmp_path / "pipe.py")
    (tmp_path / ".#a.py").symlink_to("somebody@host.123")  # Emacs' lock
    (tmp_path / "b.ipynb").mkdir()
    (tmp_path / "a.py").write_text(BAD)
    assert main(["lint", str(tmp_path)]) == 1
    assert "Found 1 problem." in capsys.readouterr().out


def test_wrong_numbers_of_processes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["lint", str(tmp_path), "--jobs", "0"]) == 2
    assert "from 1 on, and is 0" in capsys.readouterr().err


def test_many_files_are_read_by_several_processes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for number in range(70):
        (tmp_path / f"a{number}.py").write_text(BAD)
    assert main(["lint", str(tmp_path), "--jobs", "2"]) == 1
    assert "Found 70 problems." in capsys.readouterr().out


def test_loops_of_links_end(tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to(tmp_path)
    (tmp_path / "self").symlink_to(tmp_path / "self")
    (tmp_path / "a.py").write_text(BAD)
    assert main(["lint", str(tmp_path)]) == 1
    assert main(["lint", str(tmp_path / "self")]) == 2


@pytest.mark.parametrize("form", ["text", "json", "github", "sarif"])
def test_outputs(
    form: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a.py").write_text(BAD)
    Path("b.ipynb").write_text(notebook("x = 1", BAD))
    assert main(["lint", "--output-format", form]) == 1
    out = capsys.readouterr().out
    if form == "text":
        assert "a.py:2:9: IPD002" in out
        assert "b.ipynb:cell 2:2:9: IPD002" in out
        assert "Found 2 problems." in out
    elif form == "json":
        notes = json.loads(out)
        assert [(note["code"], note["cell"], note["location"]) for note in notes] == [
            ("IPD002", None, {"row": 2, "column": 9}),
            ("IPD002", 2, {"row": 2, "column": 9}),
        ]
    elif form == "github":
        assert out.splitlines()[0].startswith("::error title=ipydevice IPD002,file=a.py,line=2,col=9")
        assert "cell 2, line 2" in out.splitlines()[1]
    else:
        (run,) = json.loads(out)["runs"]
        assert [result["ruleId"] for result in run["results"]] == ["IPD002", "IPD002"]
        assert {"IPD002"} <= {rule["id"] for rule in run["tool"]["driver"]["rules"]}


def test_fix_writes_and_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "a.py"
    file.write_bytes(MODEL.replace("\n", "\r\n").encode() + b"\r\n")
    assert main(["lint", str(file), "--fix"]) == 0
    assert "Fixed 1 problem." in capsys.readouterr().out
    assert (
        file.read_bytes()
        == MODEL.replace("\n", "\r\n").replace("(x.shape)", "(x.shape, device=x.device)").encode() + b"\r\n"
    )


@pytest.mark.parametrize(
    "content", [b"\x7fELF\0\0", b"\xff\xfe", b"torch \xff\xfe", b"torch\0", b"# coding: nonsense\ntorch"]
)
def test_what_is_no_text(content: bytes, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.py").write_bytes(content)
    assert main(["lint", str(tmp_path)]) == 2
    said = capsys.readouterr()
    assert len(said.err.splitlines()) == 1
    assert said.out == ""
    assert (tmp_path / "a.py").read_bytes() == content


@pytest.mark.parametrize("options", [[], ["--fix"], ["--select", "IPD004"]])
@pytest.mark.parametrize("content", ["import torch\ndef f(:\n", "x = 1\ndef f(:\n"])
def test_what_does_not_parse(
    content: str, options: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "a.py"
    file.write_text(content)
    assert main(["lint", str(file), *options]) == 1
    assert capsys.readouterr().out == f"{file}:2:7: SyntaxError: invalid syntax\nFound 1 problem.\n"
    assert file.read_text() == content


@pytest.mark.parametrize("form", ["json", "github", "sarif"])
def test_what_does_not_parse_is_in_every_output(form: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.py").write_text("x = (")
    assert main(["lint", str(tmp_path), "--output-format", form]) == 1
    assert "'(' was never closed" in capsys.readouterr().out


def test_many_files_in_several_processes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for number in range(70):
        (tmp_path / f"a{number:02}.py").write_text(BAD)
    assert main(["lint", str(tmp_path), "--jobs", "2", "--output-format", "json"]) == 1
    notes = json.loads(capsys.readouterr().out)
    assert [Path(note["filename"]).name for note in notes] == [f"a{number:02}.py" for number in range(70)]


@pytest.mark.parametrize("text", ['{"cells": [', "no notebook at all", '{"cells": 3}'])
def test_a_broken_notebook_has_not_passed(text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.ipynb").write_text(text)
    assert main(["lint", str(tmp_path)]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert "a.ipynb" in said.err


def test_a_broken_notebook_is_an_input_error() -> None:
    with pytest.raises(InputError, match="JSON is broken"):
        lint.check('{"cells": [torch', "a.ipynb", Settings())
