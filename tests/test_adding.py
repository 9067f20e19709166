"""The templates of docs/adding.md, run as they stand."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from shells import Shell

import ipydevice
from ipydevice import fixes, language, lint
from ipydevice.cli import main
from ipydevice.diagnose import causes
from ipydevice.diagnosis import Diagnosis
from ipydevice.messages import entries, recognise

TEXT = (Path(__file__).parents[1] / "docs" / "adding.md").read_text(encoding="utf-8")


def template(heading: str) -> str:
    """The block below a heading."""
    (block,) = re.findall(rf"^## {heading}\n.*?```\w+\n(.*?)```", TEXT, re.DOTALL | re.MULTILINE)[:1]
    return block


def run(heading: str, **instead: str) -> dict[str, Any]:
    """The names that a template defines, with words of it replaced."""
    text = template(heading)
    for word, other in instead.items():
        text = text.replace(word, other)
    names: dict[str, Any] = {"__name__": "template"}
    exec(compile(text, f"<{heading}>", "exec"), names)
    return names


@contextlib.contextmanager
def virtual_cards(shell: Shell) -> Iterator[None]:
    shell.run("%load_ext ipydevice")
    with ipydevice.virtual_gpus(1):
        assert shell.run("import torch\nx = torch.ones(3, device='cuda')\ny = torch.ones(3)").error is None
        yield


def explained() -> Diagnosis:
    found = ipydevice.explain()
    assert found is not None
    return found


def test_a_message(monkeypatch: pytest.MonkeyPatch) -> None:
    cells = template("A message").rstrip("\n").split("\t")
    header = (Path(entries.__file__).parent / "catalogue.tsv").read_text().splitlines()[0].split("\t")
    assert len(cells) == len(header)
    told = TEXT.partition("The columns are ")[2].partition("The marks")[0]
    assert [name for name in re.findall(r"`(\w+)`", told) if name in header] == header
    optional = ("library", "host", "op", "argument")
    given = {name: cell or (None if name in optional else "") for name, cell in zip(header, cells, strict=True)}
    entry = entries.Entry(**given)  # type: ignore[arg-type]
    monkeypatch.setattr(entries, "_by_precision", lambda: (entry,))
    found = recognise(RuntimeError("my_op: index is on cpu and the table on cuda:1"))
    assert found is not None
    assert found.id == "PT999"


def test_a_cause(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    rule = run("A cause", mybackend="cuda")["on_my_backend"]
    monkeypatch.setattr(causes, "RULES", (rule,))
    with virtual_cards(shell):
        assert isinstance(shell.run("x + y").error, RuntimeError)
        assert explained().cause == "input_not_moved"
    monkeypatch.setattr(causes, "RULES", (run("A cause")["on_my_backend"],))
    with virtual_cards(shell):
        shell.run("x + y")
        assert explained().cause == "unknown"


def test_a_fix(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    """Put in the place of all others, it mends a real error."""
    repair = run("A fix")["where_it_stands"]
    monkeypatch.setattr(fixes, "WHATEVER", ())
    monkeypatch.setattr(fixes, "BY_CAUSE", dict.fromkeys(fixes.BY_CAUSE, (repair,)))
    with virtual_cards(shell):
        assert isinstance(shell.run("x + y").error, RuntimeError)
        fix = explained().fixes[0]
        assert fix.title == "move it where it stands"
        assert fix.edits[0].after == 'x + y.to("cuda:0")'
        assert shell.run(fix.edits[0].after).error is None


def test_a_lint_rule(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    program = tmp_path / "program.py"
    program.write_text("import torch\nx = torch.cuda.FloatTensor(3)\ny = torch.FloatTensor(3)\n")
    assert "IPD999" not in lint.RULES
    run("A lint rule")
    try:
        assert main(["lint", str(program)]) == 1
    finally:
        del lint.RULES["IPD999"]
    told = [line for line in capsys.readouterr().out.splitlines() if "program.py:" in line]
    assert len(told) == 1
    assert "program.py:2:5: IPD999 " in told[0]


def test_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    chinese = {"{times} times: {fact}": "{fact}，共 {times} 次", "the host waits for {device}": "CPU 等待 {device}"}
    told = run("A sentence, a language")["told"]
    assert told("cuda:0", 3) == "3 times: the host waits for cuda:0"
    monkeypatch.setattr(language, "_catalogue", chinese)
    assert told("cuda:0", 3) == "CPU 等待 cuda:0，共 3 次"
