"""%devices in a real shell: who holds memory and what frees it, options, files, completions, help."""

from __future__ import annotations

import gc
import json
import re
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import pytest
from shells import Shell

from ipydevice import show
from ipydevice.show import as_widget

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

    def test_what_frees_is_told_however_much_is_odd(self, loaded: Shell) -> None:
        for i in range(12):
            loaded.run(f"p{i} = torch.nn.Parameter(torch.ones(3)); p{i}.sum().backward(); p{i}.data = p{i}.data.cuda()")
            loaded.run(f"half{i} = torch.nn.Sequential(torch.nn.Linear(2, 2).cuda(), torch.nn.Linear(2, 2))")
        loaded.run("torch.zeros(2**21, device='cuda:1')")
        fixes = loaded_fixes(loaded)
        assert len(fixes) == 9
        assert fixes[-1]["title"] == "Free 8 MiB on cuda:1 that Out[] and _ hold"

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

    @pytest.mark.parametrize(
        ("line", "names"),
        [
            ("model, opt", ["model", "opt"]),
            ("model,", ["model"]),
            ("net.0.weight", ["net.0.weight"]),
            ("net.1[0].bias", ["net.1[0].bias"]),
            ("'model' \"host\"", ["model", "host"]),
            ("model  # of the first run", ["model"]),
            ("  # everything", ["big", "model", "host", "opt", "net"]),
        ],
    )
    def test_names_as_people_write_them(self, loaded: Shell, line: str, names: list[str]) -> None:
        loaded.run("net = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Sequential(torch.nn.Linear(2, 2)))")
        line, _, comment = line.partition("#")
        found = json.loads(loaded.run(f"%devices --json {line}{comment and '#' + comment}").text)
        assert [row["name"] for row in found["rows"]] == names

    def test_a_device_given_as_a_name(self, loaded: Shell) -> None:
        assert "did you mean %devices --device cuda?" in loaded.run("%devices cuda").text
        assert "did you mean %devices --device cpu?" in loaded.run("%devices cpu").text

    def test_a_folder(self, loaded: Shell, tmp_path: Path) -> None:
        for name in ("empty", "runs", "shards"):
            (tmp_path / name).mkdir()
        said = loaded.run(f"%devices {tmp_path / 'empty'}").text
        assert f"{tmp_path / 'empty'} is a folder, with no checkpoint file in it (.pt, " in said
        assert "no name 'empty' with a device" in loaded.run("%devices empty").text
        loaded.run("torch.save({'x': host}, 'runs/last one.pt'); torch.save({'y': host}, 'runs/best.pt')")
        for line in ("runs", "runs/", "./runs"):
            said = loaded.run(f"%devices {line}").text
            assert "runs is a folder: give a file in it, such as" in said.replace("runs/ is", "runs is")
            assert "(there: best.pt, last one.pt)" in said
        (tmp_path / "shards" / ".metadata").touch()
        assert "dcp_to_torch_save" in loaded.run("%devices ./shards").text
        loaded.run("runs = host")
        assert loaded.run("%devices runs").text.startswith("1 name")

    def test_files_as_people_write_them(self, loaded: Shell, tmp_path: Path) -> None:
        loaded.run("import os; os.mkdir('runs')")
        loaded.run("torch.save({'x': host}, 'runs/last one.pt'); torch.save({'y': host}, 'runs/best.pt')")
        assert "last one.pt (torch.save): 1 tensor" in loaded.run('%devices "runs/last one.pt"').text
        both = loaded.run("%devices runs/*.pt").text
        assert "best.pt (torch.save)" in both
        assert "last one.pt (torch.save)" in both
        loaded.run("torch.save({'z': host}, 'runs/weights')")
        assert "weights (torch.save): 1 tensor" in loaded.run("%devices runs/weights").text

    def test_each_example_of_the_help_runs(self, loaded: Shell) -> None:
        loaded.run("torch.save({'x': host}, 'model.pt')\ngpus.disable()\ndel gpus, big")
        help_text = loaded.ip.find_line_magic("devices").__doc__
        examples = re.findall(r"^ +(%devices.*)$", help_text.partition("Examples")[2], re.MULTILINE)
        assert len(examples) >= 7
        for example in examples:
            assert "Error" not in loaded.run(example).text, example
        loaded.run("%devices --virtual off\ngpus = ipydevice.virtual_gpus(1).enable()")


class TestMoreThanIsLookedAt:
    """Where a bound has cut the look into a thing, each figure of it says "at least", in every view."""

    CUT: ClassVar = {
        "many": (
            "[a] + [object() for _ in range(100_001)]",
            "at least 1 tensor: 100,000 items of a container are looked at",
        ),
        "pairs": (
            "{i: [a, object()] for i in range(99_000)}",
            "at least 1 tensor: 200,000 of the things in it are looked at",
        ),
        "deep": ("[a, nested(70)]", "at least 1 tensor: it is looked at 64 levels deep"),
        "numbers": (
            "[a, list(range(1_000_001))]",
            "at least 1 tensor: 1,000,000 items of a container of numbers are looked at",
        ),
        "net": (
            "with_cache(torch.nn.Linear(2, 2), [object() for _ in range(100_001)])",
            "at least 2 tensors: 100,000 items of a container are looked at",
        ),
        "opt": (
            "with_cache(torch.optim.SGD([a.requires_grad_()]), nested(70))",
            "at least 1 tensor: it is looked at 64 levels deep",
        ),
    }
    SETUP = """
a = torch.ones(1)
def nested(levels):
    inner = torch.ones(1)
    for _ in range(levels):
        inner = [inner]
    return inner
def with_cache(thing, cache):
    thing.cache = cache
    return thing
"""

    @pytest.mark.parametrize("name", CUT)
    def test_in_every_view(self, loaded: Shell, name: str) -> None:
        code, said = self.CUT[name]
        loaded.run(f"{self.SETUP}\n{name} = {code}\nview = ipydevice.inventory({{{name!r}: {name}}})")
        assert said in loaded.run(f"%devices {name}").text
        view = loaded.names["view"]
        held = re.findall(r"at least \d+ B", str(view))
        assert len(held) == 2  # the bar and the row
        assert len(set(held)) == 1
        assert view._repr_html_().count(held[0]) == 2
        assert said in view._repr_html_()
        found = json.loads(json.dumps(view.to_dict()))
        assert found["at_least"] is True
        assert [row["at_least"] for row in found["rows"]] == [True]
        assert json.loads(zlib.decompress(as_widget.rows(show.tree_of(view))))[0][0][-1] == 1

    @pytest.mark.parametrize(
        "code",
        [
            "list(torch.empty(99_000).unbind())", "[a, list(range(1_000_000))]", "[nested(60), [1] * 99_999]",
            "[a] + [{'text': 'x', 'ids': [i], 'more': {'a': (1, 2)}} for i in range(90_000)]",
        ],
    )  # fmt: skip
    def test_what_is_all_seen_is_told_as_it_is(self, loaded: Shell, code: str) -> None:
        loaded.run(f"{self.SETUP}\nthing = {code}")
        text = loaded.run("%devices thing").text
        assert "1 name with a device" in text
        assert "at least" not in text
        assert '"at_least": true' not in loaded.run("%devices thing --json").text

    def test_memory(self, loaded: Shell) -> None:
        loaded.run(f"{self.SETUP}\ndeep = {self.CUT['deep'][0]}\nmore = torch.zeros(2**20).cuda()")
        text = " ".join(loaded.run("%devices").text.split())
        assert "cuda:0: at least 8.0 MiB named by you;" in text
        assert memory(loaded)["cuda:0"]["at_least"] == ["named"]
        loaded.run("del deep")
        loaded.run("[torch.zeros(2**20).cuda(), nested(70)]")
        text = " ".join(loaded.run("%devices").text.split())
        assert "at least 4.0 MiB held by Out[] and _" in text
        assert "Free at least 4 MiB on cuda:0 that Out[] and _ hold" in text

    @pytest.mark.parametrize("each", [2, 4])
    def test_memory_of_a_deep_recursion(self, loaded: Shell, each: int) -> None:
        """Two tensors in each of 900 frames are all seen; of four in each it says that there are more."""
        names = ", ".join(f"x{i}" for i in range(each))
        loaded.run(
            f"def fall(n):\n    {names} = torch.empty({each}, 1).unbind()\n    return fall(n - 1) if n else 1 / 0"
        )
        loaded.run("import sys\ntry:\n    fall(899)\nexcept ZeroDivisionError as error:\n    sys.last_value = error")
        told = memory(loaded)["cuda:0"]
        assert told["at_least"] == (["error"] if each == 4 else [])

    def test_opened_up(self, loaded: Shell) -> None:
        loaded.run(f"{self.SETUP}\nmany = {self.CUT['many'][0]}\nlarge = [*torch.empty(99_999).unbind()]")
        assert loaded.run("%devices many -v").text.startswith("at least 2 names")
        text = loaded.run("%devices large -v").text
        assert text.startswith("100,000 names")
        assert "and 99,960 more" in text
        loaded.run("large.append([*torch.empty(9).unbind()])")
        text = loaded.run("%devices large -v").text
        assert text.startswith("100,009 names")
        assert "and 99,969 more" in text

    def test_names_that_may_hold_one(self, loaded: Shell) -> None:
        late = "late = [[*range(30_000)], [*range(30_000), host]]"
        assert loaded.run(f"{late}\nweb = [[object()] for _ in range(100_001)]").error is None
        text = loaded.run("%devices").text
        assert "no tensor was found in web, of which only a part was looked at" in " ".join(text.split())
        assert "late" in text
        assert "only a part was looked at" in loaded.run("%devices web").text
        assert [label for label, _ in json.loads(loaded.run("%devices --json").text)["notes"]] == ["note"]


class TestVirtual:
    def test_off_switches_off_what_the_magic_has_switched_on(self, shell: Shell) -> None:
        shell.run("import torch\n%load_ext ipydevice")
        assert "Virtual GPUs are on: cuda:0, cuda:1" in shell.run("%devices --virtual 2").text
        assert shell.run("%devices --virtual off").text == "Virtual GPUs are off.\n"
        assert shell.run("assert not torch.cuda.is_available()").error is None

    def test_a_reload_leaves_them_on(self, shell: Shell) -> None:
        shell.run("import torch\n%load_ext ipydevice\n%devices --virtual 2")
        shell.run("x = torch.ones(2, device='cuda:1')\ntorch.set_default_device('cuda:0')")
        for _ in range(2):
            assert shell.run("%reload_ext ipydevice").text == ""
            assert shell.run("assert str(x.device) == 'cuda:1' and str(torch.ones(1).device) == 'cuda:0'").error is None
        assert shell.run("%devices --virtual off").text == "Virtual GPUs are off.\n"
        assert shell.run("assert not torch.cuda.is_available()").error is None

    def test_unloading_says_that_it_switches_them_off(self, shell: Shell) -> None:
        shell.run("import torch\n%load_ext ipydevice")
        assert shell.run("%unload_ext ipydevice").text == ""
        shell.run("%load_ext ipydevice\n%devices --virtual 2")
        assert shell.run("%unload_ext ipydevice").text.startswith("Virtual GPUs are off")
        shell.run("%load_ext ipydevice")
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
