"""The magics in a real shell: arguments, and clear words on bad ones."""

from __future__ import annotations

import gc
import sys
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from shells import Shell

from ipydevice import hook
from ipydevice.diagnosis import Diagnosis, Edit, Fix, Place, Rerun

SETUP = """
import torch, ipydevice
gpus = ipydevice.virtual_gpus(1).enable()
first = torch.zeros(1000, device="cuda:0")
second = torch.zeros(10)
model = torch.nn.Linear(3, 2).to("cuda:0")
"""
FAIL = "first[:10] + second"


@pytest.fixture
def loaded(shell: Shell) -> Iterator[Shell]:
    shell.run("%load_ext ipydevice")
    assert shell.run(SETUP).error is None
    yield shell
    shell.run("gpus.disable()")


def next_input(shell: Shell) -> str | None:
    """What stands in the next cell of a shell."""
    text: str | None = getattr(shell.ip, "rl_next_input", None)
    shell.ip.rl_next_input = None
    return text


class TestDevices:
    def test_lists_the_workspace(self, loaded: Shell) -> None:
        text = loaded.run("%devices").text
        for name, device in [("first", "cuda:0"), ("second", "cpu"), ("model", "cuda:0")]:
            (row,) = [line for line in text.splitlines() if line.split()[:1] == [name]]
            assert device in row

    def test_of_some_names(self, loaded: Shell) -> None:
        text = loaded.run("%devices second mod*").text
        assert "second" in text
        assert "model" in text
        assert "first" not in text

    def test_opened_up(self, loaded: Shell) -> None:
        assert "weight" not in loaded.run("%devices model").text
        assert "weight" in loaded.run("%devices model -v").text

    def test_on_one_device(self, loaded: Shell) -> None:
        text = loaded.run("%devices --device cpu").text
        assert "second" in text
        assert "first" not in text

    def test_by_bytes(self, loaded: Shell) -> None:
        names = [line.split()[0] for line in loaded.run("%devices --sort bytes").text.splitlines() if line.split()]
        rows = [name for name in names if name in ("first", "second", "model")]
        assert rows == ["first", "second", "model"]

    @pytest.mark.parametrize(
        ("line", "said"),
        [
            ("%devices nonsuch", "nonsuch"),
            ("%devices --sort colour", "bytes"),
            (
                "%devices --virtual some",
                "--virtual takes a number of GPUs, such as 2 (at most 128), or off; it got 'some'",
            ),
            ("%devices --virtual 0", "it got '0'"),
            ("%devices --virtual -3", "--virtual"),
            ("%devices --colour", "%devices: unrecognized arguments: --colour. It takes [-v] [--device DEVICE]"),
            ("%devices --virtual 200", "it got '200'"),
            ("%devices nonsuch.pt", "there is no file 'nonsuch.pt'"),
            (
                "%devices nowhere/nonsuch",
                "no name 'nowhere/nonsuch' with a device in this workspace; it has first, second",
            ),
            ("%devices secnd", "did you mean second?"),
            ("%devices ipydevice", "ipydevice has no device"),
            ("%devices --device gpu", "but got 'gpu'; here are cpu, cuda:0"),
            ("%devices --kind thing", "kind is one of tensor"),
        ],
    )
    def test_bad_input(self, loaded: Shell, line: str, said: str) -> None:
        run = loaded.run(line)
        assert "UsageError" in run.text
        assert said in run.text
        assert "Traceback" not in run.text

    def test_help_has_examples(self, loaded: Shell) -> None:
        loaded.run("text = get_ipython().find_line_magic('devices').__doc__")
        assert "--sort" in loaded.names["text"]
        assert "%devices model opt -v" in loaded.names["text"]


class TestVirtual:
    def test_on_and_off(self, shell: Shell) -> None:
        shell.run("import torch")
        shell.run("%load_ext ipydevice")
        assert "cuda:0, cuda:1" in shell.run("%devices --virtual 2").text
        assert shell.run("x = torch.zeros(2, device='cuda:1')\nassert str(x.device) == 'cuda:1'").error is None
        assert shell.run("%devices --virtual 1").error is None
        assert shell.run("assert torch.cuda.device_count() == 1").error is None
        assert "off" in shell.run("%devices --virtual off").text
        assert shell.run("assert torch.cuda.device_count() == 0").error is None

    def test_unloading_switches_off_what_the_magic_has_switched_on(self, shell: Shell) -> None:
        shell.run("import torch")
        shell.run("%load_ext ipydevice")
        shell.run("%devices --virtual 2")
        shell.run("%unload_ext ipydevice")
        assert shell.run("assert torch.cuda.device_count() == 0").error is None


class TestDevicefix:
    def test_shows_the_panel_again(self, loaded: Shell) -> None:
        panel = loaded.run(FAIL).text.partition("✗")[2]
        assert panel
        assert loaded.run("%devicefix").text.partition("✗")[2] == panel

    def test_prints_and_inserts_a_fix(self, loaded: Shell) -> None:
        loaded.run(FAIL)
        run = loaded.run("%devicefix 1")
        assert run.error is None
        text = next_input(loaded)
        assert text
        assert text.strip() in run.text

    def test_the_inserted_fix_works(self, loaded: Shell) -> None:
        loaded.run(FAIL)
        loaded.run("%devicefix 2")
        text = next_input(loaded)
        assert text
        assert loaded.run(text).error is None

    def test_nothing_to_fix(self, loaded: Shell) -> None:
        assert "There has been no device error in this session." in loaded.run("%devicefix 1").text
        assert next_input(loaded) is None

    def test_after_an_error_of_another_kind_the_last_device_error_counts(self, loaded: Shell) -> None:
        loaded.run(FAIL)
        loaded.run("1 / 0")
        assert "✗ second" in loaded.run("%devicefix").text

    @pytest.mark.parametrize(
        ("line", "said"),
        [
            ("%devicefix 99", "takes the number of a fix, but got '99'; there are 1 (make second on"),
            ("%devicefix 0", "but got '0'; there are 1 ("),
            ("%devicefix -1", "but got '-1'; there are 1 ("),
            ("%devicefix 1 2", "%devicefix: unrecognized arguments: 2. It takes [--apply]"),
            ("%devicefix one", "but got 'one'; there are 1 ("),
            ("%devicefix --apply", "%devicefix --apply needs the number of a fix: %devicefix 1 --apply"),
            ("%devicefix 1 --apply", "fix 1 changes cells, not files: %devicefix 1 puts it into the next cell"),
            ("%devicefix 1 --forget", "--forget stands alone"),
            ("%devicefix --report --forget", "--forget stands alone"),
            ("%devicefix 1 --report", "--report stands alone"),
            ("%devicefix 1 2", "2"),
        ],
    )
    def test_bad_input(self, loaded: Shell, line: str, said: str) -> None:
        loaded.run(FAIL)
        run = loaded.run(line)
        assert "UsageError" in run.text
        assert said in run.text
        assert "Traceback" not in run.text
        assert next_input(loaded) is None


class TestReport:
    def test_tells_the_error_and_the_surroundings(self, loaded: Shell) -> None:
        loaded.run(FAIL)
        text = loaded.run("%devicefix --report").text
        assert text.startswith("### second is on cpu, first is on cuda:0\n")
        assert FAIL in text
        assert "**versions** ipydevice" in text
        assert "**devices** cuda:0 " in text

    def test_of_a_check(self, loaded: Shell) -> None:
        loaded.run(f"%%devicecheck\n{FAIL}")
        assert "1 device mistake" in loaded.run("%devicefix --report").text


class TestSeveralCells:
    """Fixes of more than one cell, and cells with magics."""

    def offered(self, shell: Shell, *fixes: Fix) -> None:
        hung = hook.of(shell.ip)
        assert hung is not None
        hung.last = Diagnosis("message", "common_check", "x is on cpu", failed=Place(cell=7), fixes=fixes)

    def test_one_cell_takes_them_all(self, loaded: Shell) -> None:
        edits = (Edit("a", "a2", cell=2), Edit("b", "b2", cell=5))
        self.offered(loaded, Fix("both", "edit", edits, rerun=(Rerun(2, None, "a2"), Rerun(7, None, "c"))))
        run = loaded.run("%devicefix 1")
        assert next_input(loaded) == "# replaces In [2]\na2\n\n# replaces In [5]; then run In [7]\nb2"
        assert "# both" in run.text

    def test_a_cell_magic_stays_on_top_of_its_own_cell(self, loaded: Shell) -> None:
        edits = (Edit("%%time\na", "%%time\na2", cell=2), Edit("b", "b2", cell=5))
        self.offered(loaded, Fix("both", "edit", edits))
        run = loaded.run("%devicefix 1")
        assert next_input(loaded) == "%%time\n# replaces In [2]\na2"
        assert "b2" in run.text


class TestFiles:
    """A fix of a module is written by the kernel, and only over the text it was made for."""

    def offered(self, shell: Shell, file: Path, before: str, after: str) -> None:
        hung = hook.of(shell.ip)
        assert hung is not None
        fix = Fix(
            "move it where it is made",
            "patch",
            (Edit(before, after, file=str(file)),),
            setup="print('reloaded')",
            rerun=(Rerun(3, None, "train()"),),
            diff="--- a\n+++ b",
        )
        hung.last = Diagnosis("message", "common_check", "x is on cpu", failed=Place(cell=3), fixes=(fix,))

    def test_is_written(self, loaded: Shell, tmp_path: Path) -> None:
        file = tmp_path / "model.py"
        file.write_bytes("# -*- coding: latin-1 -*-\r\nx = 'é'\r\n".encode("latin-1"))
        before = "# -*- coding: latin-1 -*-\nx = 'é'\n"
        self.offered(loaded, file, before, before + "y = 1\n")
        assert next_input(loaded) is None
        offer = loaded.run("%devicefix 1")
        assert "+++ b" in offer.text
        assert next_input(loaded) == "%devicefix 1 --apply"
        run = loaded.run("%devicefix 1 --apply")
        assert f"Written: {file}." in run.text
        assert "Then run In [3]." in run.text
        assert next_input(loaded) == "print('reloaded')"
        assert file.read_bytes() == "# -*- coding: latin-1 -*-\r\nx = 'é'\r\ny = 1\r\n".encode("latin-1")

    def test_is_refused_when_the_file_has_changed(self, loaded: Shell, tmp_path: Path) -> None:
        file = tmp_path / "model.py"
        file.write_text("x = 2\n")
        self.offered(loaded, file, "x = 1\n", "x = 3\n")
        assert "nothing was written" in loaded.run("%devicefix 1 --apply").text
        assert file.read_text() == "x = 2\n"

    def test_is_refused_when_the_file_is_gone(self, loaded: Shell, tmp_path: Path) -> None:
        self.offered(loaded, tmp_path / "gone.py", "x = 1\n", "x = 3\n")
        run = loaded.run("%devicefix 1 --apply")
        assert "nothing was written" in run.text
        assert "Traceback" not in run.text


class TestForget:
    def test_frees_what_the_error_holds(self, loaded: Shell) -> None:
        loaded.run("def step():\n    held = torch.zeros(5)\n    probe(held)\n    return held + first[:5]")
        watched: list[weakref.ref[Any]] = []
        loaded.names["probe"] = lambda tensor: watched.append(weakref.ref(tensor))
        run = loaded.run("step()")
        assert run.error is not None
        run.error = None
        gc.collect()
        assert watched[0]() is not None
        assert "Forgotten" in loaded.run("%devicefix --forget").text
        assert watched[0]() is None

    def test_says_how_much(self, loaded: Shell) -> None:
        loaded.run("def step():\n    held = torch.zeros(2**20, device='cuda:0')\n    return held + torch.zeros(3)")
        run = loaded.run("step()")
        run.error = None
        assert "Forgotten: 4.0 MiB on cuda:0 that only the last error held" in loaded.run("%devicefix --forget").text
        assert "Forgotten: the tensors" in loaded.run("%devicefix --forget").text

    def test_afterwards_debug_and_tb_have_nothing_to_show(self, loaded: Shell) -> None:
        loaded.run(FAIL)
        loaded.run("%devicefix --forget")
        assert not hasattr(sys, "last_traceback")
        assert "No traceback" in loaded.run("%tb").text
        assert loaded.run("%debug").error is None  # logs that there is nothing to debug
        assert "✗ second" in loaded.run("%devicefix").text

    def test_with_nothing_to_forget(self, loaded: Shell) -> None:
        assert loaded.run("%devicefix --forget").error is None

    def test_the_next_error_is_shown_as_ever(self, loaded: Shell) -> None:
        loaded.run(FAIL)
        loaded.run("%devicefix --forget")
        assert loaded.run(FAIL).text.count("✗ second") == 1
