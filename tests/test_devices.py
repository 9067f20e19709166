"""%devices in a real shell: who holds memory and what frees it, options, files, completions, help."""

from __future__ import annotations

import gc
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from shells import Shell

SETUP = """
import torch, ipydevice
gpus = ipydevice.virtual_gpus(2).enable()
big = torch.zeros(2**20, device="cuda:0")
model = torch.nn.Linear(3, 2).to("cuda:0")
host = torch.zeros(3)
opt = torch.optim.SGD(model.parameters(), lr=0.1)
"""
MIB = 2**20


@pytest.fixture
def loaded(shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Shell]:
    monkeypatch.chdir(tmp_path)
    shell.run("%load_ext ipydevice")
    assert shell.run(SETUP).error is None
    yield shell
    shell.run("gpus.disable()")


def memory(shell: Shell) -> dict[str, dict[str, Any]]:
    """What the table says of each device's memory."""
    found = json.loads(shell.run("%devices --json").text)
    return {one["device"]: one for one in found["memory"]}


def _by_no_name(text: str) -> float:
    """MiB on cuda:1 that torch has handed out and no name leads to."""
    told = re.search(r"cuda:1: [^:]*?of which ([\d.]+) (B|KiB|MiB) by no name", " ".join(text.split()))
    return float(told[1]) / {"B": 2**20, "KiB": 1024, "MiB": 1}[told[2]] if told else 0.0


class TestMemory:
    def test_names_and_gradients(self, loaded: Shell) -> None:
        loaded.run("wide = torch.nn.Linear(1024, 1024, bias=False).cuda()")
        loaded.run("wide(torch.ones(1, 1024).cuda()).sum().backward();")
        card = memory(loaded)["cuda:0"]
        assert card["named"] >= (4 + 4 + 4) * MIB  # big, the weight and its gradient
        assert card["output"] == card["error"] == 0
        assert card["allocated"] >= card["named"]
        assert card["used"] <= card["total"]

    def test_outputs_and_the_command_that_frees_them(self, loaded: Shell) -> None:
        loaded.run("torch.zeros(2**21, device='cuda:1')")
        card = memory(loaded)["cuda:1"]
        assert card["output"] == 8 * MIB
        assert card["holders"][0][1] == 8 * MIB
        assert card["holders"][0][0].startswith("Out[")
        text = loaded.run("%devices").text
        assert "8.0 MiB held by Out[] and _" in text
        (fix,) = [fix for fix in loaded_fixes(loaded) if "Out[]" in fix["title"]]
        assert fix["title"] == "Free 8 MiB on cuda:1 that Out[] and _ hold"
        assert loaded.run(fix["setup"]).error is None
        gc.collect()
        assert loaded.run("assert torch.cuda.memory_allocated(1) == 0").error is None

    def test_frames_of_the_last_error_and_the_command_that_frees_them(self, loaded: Shell) -> None:
        loaded.run("def train():\n    hidden = torch.zeros(2**20, device='cuda:1')\n    return hidden[:3] + host")
        run = loaded.run("train()")
        assert run.error is not None
        run.error = None
        loaded.run("1 + 1")  # the error is not forgotten by cells that work
        card = memory(loaded)["cuda:1"]
        assert card["error"] == 4 * MIB
        assert card["holders"] == [["hidden in train()", 4 * MIB]]
        (fix,) = [fix for fix in loaded_fixes(loaded) if "error" in fix["title"]]
        assert fix["setup"] == "%devicefix --forget"
        loaded.run(fix["setup"])
        assert loaded.run("assert torch.cuda.memory_allocated(1) == 0").error is None
        assert "cuda:1" not in memory(loaded)

    def test_what_no_name_reaches(self, loaded: Shell) -> None:
        loaded.run("x = torch.zeros(1, device='cuda:1')")
        before = _by_no_name(loaded.run("%devices").text)  # tests before this one may have left something
        loaded.run(
            "def keep():\n    held = torch.zeros(2**20, device='cuda:1')\n    import sys\n    sys._kept = held\nkeep()"
        )
        assert _by_no_name(loaded.run("%devices").text) == pytest.approx(before + 4.0, abs=0.2)
        loaded.run("del sys._kept" if "sys" in loaded.names else "import sys; del sys._kept")

    def test_nothing_is_kept_by_looking(self, loaded: Shell) -> None:
        loaded.run("import weakref\nw = weakref.ref(big)")
        loaded.run("%devices")
        loaded.run("inv = ipydevice.inventory()")
        loaded.run("del big")
        gc.collect()
        assert loaded.run("assert w() is None").error is None


def loaded_fixes(shell: Shell) -> list[dict[str, Any]]:
    fixes: list[dict[str, Any]] = json.loads(shell.run("%devices --json").text)["fixes"]
    return fixes


class TestOptions:
    def rows(self, shell: Shell, line: str) -> list[str]:
        return [row["name"] for row in json.loads(shell.run(f"%devices {line} --json").text)["rows"]]

    def test_they_narrow_and_sort(self, loaded: Shell) -> None:
        assert self.rows(loaded, "") == ["big", "model", "host", "opt"]
        assert self.rows(loaded, "--kind tensor") == ["big", "host"]
        assert self.rows(loaded, "model opt --kind parameter -v")[:2] == ["model.weight", "model.bias"]
        assert self.rows(loaded, "--device cpu") == ["host"]
        assert self.rows(loaded, "--sort name") == ["big", "host", "model", "opt"]
        assert self.rows(loaded, "--odd") == []
        loaded.run("model.weight.data = model.weight.data.cpu()")
        assert self.rows(loaded, "--odd") == ["model"]

    def test_the_fix_of_the_table_is_devicefix_1(self, loaded: Shell) -> None:
        loaded.run("model.bias.data = model.bias.data.cpu()")
        loaded.run("%devices")
        assert "model.to('cuda:0')" in loaded.run("%devicefix 1").text
        assert loaded.run(loaded.ip.rl_next_input).error is None
        loaded.ip.rl_next_input = None
        assert self.rows(loaded, "--odd") == []

    @pytest.mark.parametrize(
        ("line", "said"),
        [
            ("--odd", "nothing odd among 4 names with a device"),
            ("--kind generator", "nothing of kind generator among 4 names"),
            ("--device cuda:1", "nothing on cuda:1 among 4 names"),
        ],
    )
    def test_nothing_is_left(self, loaded: Shell, line: str, said: str) -> None:
        assert loaded.run(f"%devices {line}").text.startswith(said)

    def test_plain(self, loaded: Shell) -> None:
        assert loaded.run("%devices host --plain").text.startswith("1 name with a device\n")

    def test_a_checkpoint_beside_a_name(self, loaded: Shell) -> None:
        loaded.run("torch.save({'x': big, 'y': host}, 'model.pt')")
        text = loaded.run("%devices model.pt host --device cpu").text
        assert "model.pt (torch.save): 2 tensors" in text
        assert "['y']" in text
        assert "['x']" not in text
        assert "1 name with a device" in text

    @pytest.mark.parametrize(
        ("line", "said"),
        [
            ("--plain --json", "either --plain text or --json"),
            ("--kind modul", "kind is one of tensor, parameter"),
            ("gone.pt", "there is no file 'gone.pt'"),
            ("/gone", "there is no file '/gone'"),
            ("big.pt", "no name 'big.pt' with a device"),
        ],
    )
    def test_bad_input(self, loaded: Shell, line: str, said: str) -> None:
        run = loaded.run(f"%devices {line}")
        assert "UsageError" in run.text
        assert said in run.text

    def test_each_example_of_the_help_runs(self, loaded: Shell) -> None:
        loaded.run("torch.save({'x': host}, 'model.pt')\ngpus.disable()\ndel gpus, big")
        help_text = loaded.ip.find_line_magic("devices").__doc__
        examples = re.findall(r"^ +(%devices.*)$", help_text.partition("Examples")[2], re.MULTILINE)
        assert len(examples) >= 7
        for example in examples:
            assert "Error" not in loaded.run(example).text, example
        loaded.run("%devices --virtual off\ngpus = ipydevice.virtual_gpus(1).enable()")


def test_more_than_is_looked_at(loaded: Shell) -> None:
    loaded.run("many = [torch.empty(0)] * 3 + [torch.empty(0) for _ in range(100_000)]; few = many[:5]")
    text = loaded.run("%devices many few").text
    assert "at least 99,998 tensors: 100,000 items of a container are looked at" in text
    assert text.count("at least") == 1


class TestVirtual:
    def test_off_switches_off_what_the_magic_has_switched_on(self, shell: Shell) -> None:
        shell.run("import torch\n%load_ext ipydevice")
        assert "Virtual GPUs are on: cuda:0, cuda:1" in shell.run("%devices --virtual 2").text
        assert shell.run("%devices --virtual off").text == "Virtual GPUs are off.\n"
        assert shell.run("assert not torch.cuda.is_available()").error is None

    def test_off_tells_of_what_the_user_has_switched_on(self, loaded: Shell) -> None:
        loaded.run("%devices --virtual 3")
        said = loaded.run("%devices --virtual off").text
        assert said.startswith("2 virtual GPUs stay on, which your code has switched on: call disable() on gpus")
        assert loaded.run("assert torch.cuda.device_count() == 2").error is None


class TestCompletion:
    def offered(self, shell: Shell, line: str) -> list[str]:
        _, found = shell.ip.complete(line.rpartition(" ")[2], line)
        return list(found)

    def test_names_options_and_values(self, loaded: Shell) -> None:
        loaded.run("number = 3\nmode = 'text'\ntorch.save({}, 'mo.pt')")
        assert set(self.offered(loaded, "%devices mo")) == {"model", "mo.pt"}
        assert self.offered(loaded, "%devices --s") == ["--sort"]
        assert self.offered(loaded, "%devices --sort b") == ["bytes"]
        assert self.offered(loaded, "%devices --kind mod") == ["module"]
        assert self.offered(loaded, "%devices --device cu") == ["cuda:0"]

    def test_unloading_takes_them_away(self, loaded: Shell) -> None:
        loaded.run("%unload_ext ipydevice")
        assert "--sort" not in self.offered(loaded, "%devices --s")
        loaded.run("%load_ext ipydevice")
        assert self.offered(loaded, "%devices --s") == ["--sort"]


def test_the_object(loaded: Shell) -> None:
    loaded.run("inv = ipydevice.inventory()")
    inv = loaded.names["inv"]
    assert [row["name"] for row in inv.to_dict()["rows"]] == ["big", "model", "host", "opt"]
    assert "<table" in inv._repr_html_()
    assert "big" in str(inv)
    json.dumps(inv.to_dict())


def test_as_a_frame_of_pandas(loaded: Shell) -> None:
    pandas = pytest.importorskip("pandas")
    loaded.run("inv = ipydevice.inventory()")
    frame = loaded.names["inv"].to_pandas()
    assert isinstance(frame, pandas.DataFrame)
    assert list(frame.index) == ["big", "model", "host", "opt"]
    assert frame.loc["host", "device"] == "cpu"
    assert frame.loc["big", "bytes"] == 4 * MIB
