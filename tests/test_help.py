"""The examples in the help of the magics and commands, run as they stand."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from shells import Shell

from ipydevice.cli import COMMANDS

WORKSPACE = """
import torch
from torch import nn

import helper
import ipydevice

gpus = ipydevice.virtual_gpus(2).enable()
model = nn.Linear(4, 2).to("cuda:0")
opt = torch.optim.Adam(model.parameters())
model(torch.ones(3, 4, device="cuda:0")).sum().backward()
opt.step()
torch.save(model.state_dict(), "model.pt")
"""
HELPER = """
import torch


def shifted(x):
    shift = torch.ones(4)
    return x + shift
"""


@pytest.fixture
def workspace(shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Shell]:
    """What the examples speak of, and an error whose fix is in a file, as `--apply` wants it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "helper.py").write_text(HELPER)
    shell.run("%load_ext ipydevice")
    assert shell.run(WORKSPACE).error is None
    assert isinstance(shell.run("helper.shifted(torch.rand(3, 4, device='cuda:0'))").error, RuntimeError)
    yield shell
    assert shell.run("gpus.disable()").error is None


def examples(shell: Shell, kind: str, magic: str) -> list[str]:
    """The lines of a magic's help that begin with the magic itself."""
    help_text = shell.ip.magics_manager.magics[kind][magic].__doc__
    _, _, below = help_text.partition("Examples")
    assert below, f"{magic} has no examples"
    below = below.partition("positional arguments:")[0].partition("options:")[0]
    mark = "%%" if kind == "cell" else "%"
    return re.findall(rf"(?<!%){mark}{magic}(?!\w)[^`\n]*", below)


@pytest.mark.parametrize("magic", ["devices", "devicefix"])
def test_line_magics(workspace: Shell, magic: str) -> None:
    found = examples(workspace, "line", magic)
    assert len(found) >= 5
    for example in found:
        run = workspace.run(example)
        assert run.error is None, example
        assert run.text.strip(), example
        assert "UsageError" not in run.text, f"{example}\n{run.text}"


def test_cell_magic(workspace: Shell) -> None:
    found = examples(workspace, "cell", "devicecheck")
    assert len(found) >= 3
    for example in found:
        run = workspace.run(f"{example}\nmodel(torch.rand(3, 4))")
        assert run.error is None, example
        assert "device mistake" in run.text, f"{example}\n{run.text}"


@pytest.mark.parametrize("magic", ["%devices?", "%devicefix?", "%%devicecheck?"])
def test_help_as_people_ask_for_it(workspace: Shell, magic: str) -> None:
    found = workspace.ip.object_inspect_text(magic.rstrip("?"))
    assert "Examples" in found
    assert "options:" in found


@pytest.mark.parametrize("line", ["%devices -h", "%devicefix --help", "%%devicecheck -h", "%devicecheck --help"])
def test_help_as_people_of_the_command_line_ask_for_it(workspace: Shell, line: str) -> None:
    run = workspace.run(line)
    assert run.error is None
    assert run.text.startswith(("%devices [", "%devicefix [", "%%devicecheck ["))
    assert "Examples" in run.text
    assert "options:" in run.text
    assert "UsageError" not in run.text


def test_help_runs_no_code_below_it(workspace: Shell) -> None:
    run = workspace.run("%%devicecheck -h\nran = True")
    assert "options:" in run.text
    assert "the code below was not run" in run.text
    assert "ran" not in workspace.names


@pytest.mark.parametrize("command", COMMANDS)
def test_commands_have_examples(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    from ipydevice.cli import main

    with pytest.raises(SystemExit) as ended:
        main([command, "--help"])
    assert ended.value.code == 0
    shown = capsys.readouterr().out
    assert "examples:" in shown
    assert f"ipydevice {command}" in shown.partition("examples:")[2]
