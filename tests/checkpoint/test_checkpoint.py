"""Checkpoint files against `torch.load` itself: the same tensors, the same verdict; hostile ones never run."""

from __future__ import annotations

import collections
import json
import os
import pickle
import struct
import sys
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from ipydevice import checkpoint
from ipydevice.virtual import virtual_gpus


class Plain:
    """A class of the user's, which `weights_only` does not know."""

    def __init__(self) -> None:
        self.scale = torch.ones(2)


class Calls:
    """What unpickling would call when it meets this object."""

    def __init__(self, function: Callable[..., Any], *arguments: Any) -> None:
        self.does = function, arguments

    def __reduce__(self) -> Any:
        return self.does


def everything() -> dict[str, Any]:
    net = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4))
    optimizer = torch.optim.Adam(net.parameters())
    net(torch.ones(3, 3)).sum().backward()
    optimizer.step()
    whole = torch.arange(10)
    return {
        "model": net.state_dict(), "optimizer": optimizer.state_dict(), "epoch": 3, "half": torch.ones(2).half(),
        "brain": torch.ones(2, dtype=torch.bfloat16), "view": whole[2:4], "whole": whole, "list": [torch.ones(1)],
        "parameter": nn.Parameter(torch.ones(2)), "pair": (torch.zeros(2, 0), None), "number": torch.tensor(1),
        "complex": torch.ones(2, dtype=torch.complex64), ("a", 1): torch.ones(1), "none": None,
        "counter": collections.Counter("ab"), "new": torch.ones(3, dtype=torch.uint16),
    }  # fmt: skip


def tensors_in(value: Any, path: str = "") -> Iterator[tuple[str, torch.Tensor]]:
    """The tensors of nested dictionaries and lists, by the expression that reaches them."""
    if isinstance(value, torch.Tensor):
        yield path, value
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield from tensors_in(inner, f"{path}[{key!r}]")
    elif isinstance(value, (list, tuple)):
        for i, inner in enumerate(value):
            yield from tensors_in(inner, f"{path}[{i}]")


def labels(found: Any) -> dict[str, str]:
    return dict(found.notes)


@pytest.mark.parametrize("options", [{}, {"_use_new_zipfile_serialization": False}, {"pickle_protocol": 4}], ids=str)
def test_lists_what_loading_gives(tmp_path: Path, options: dict[str, Any]) -> None:
    file = tmp_path / "model.pt"
    value = everything()
    if "_use_new_zipfile_serialization" in options:
        del value["new"]  # torch.save itself refuses it
    torch.save(value, file, **options)
    found = checkpoint.read(file)
    loaded = dict(tensors_in(torch.load(file, weights_only=False)))
    assert {row.name: (row.shape, row.dtype, row.device) for row in found.rows} == {
        path: (tuple(t.shape), str(t.dtype).removeprefix("torch."), "cpu") for path, t in loaded.items()
    }
    assert {row.name: row.bytes for row in found.rows} == {path: t.nbytes for path, t in loaded.items()}
    storages = {t.untyped_storage()._cdata: t.untyped_storage().nbytes() for t in loaded.values()}
    assert found.bytes_by_device == {"cpu": sum(storages.values())}
    rows = {row.name: row for row in found.rows}
    assert rows["['parameter']"].kind == "parameter"
    assert rows["['whole']"].note == "shares storage with ['view']"
    assert "damage" not in labels(found)


def test_a_pickled_module_is_listed_by_its_paths(tmp_path: Path) -> None:
    for options in ({}, {"_use_new_zipfile_serialization": False}):
        file = tmp_path / "net.pt"
        torch.save(nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3)), file, **options)
        assert [row.name for row in checkpoint.read(file).rows][:3] == ["[0].weight", "[0].bias", "[1].weight"]


def test_subclasses_attributes_and_sparse_tensors(tmp_path: Path) -> None:
    file = tmp_path / "odd.pt"
    tagged = torch.ones(3)
    tagged.tag = "x"  # type: ignore[attr-defined]
    torch.save({"tagged": tagged, "sparse": torch.eye(3).to_sparse(), "meta": torch.ones(2, device="meta")}, file)
    rows = [(row.name, row.shape, row.device) for row in checkpoint.read(file).rows]
    assert rows == [
        ("['tagged']", (3,), "cpu"),
        ("['meta']", (2,), "meta"),
        ("['sparse']", (2, 3), "cpu"),
        ("['sparse']", (3,), "cpu"),
    ]


def verdict(file: Path) -> str:
    """What torch.load says of it."""
    try:
        torch.load(file)
    except pickle.UnpicklingError:
        return "refuses"
    except RuntimeError as error:
        return "refuses" if "TorchScript" in str(error) else "fails here"
    return "works here"


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "value",
    [
        everything(), nn.Linear(2, 2), Plain(), {"x": torch.ones(1), "p": Path("x")}, collections.OrderedDict(a=1),
        {"set": {1, 2}, "bytes": b"x", "array": bytearray(b"y")}, torch.Size([1, 2]), torch.float16, 3,
        [Calls(os.getcwd)], Calls(print, "x"), torch.eye(2).to_sparse(), nn.Parameter(torch.ones(1)), "text",
        {"big": 2**70}, frozenset({1}), torch.device("cpu"), {"d": torch.ones(2, device="meta")},
    ],
    ids=lambda value: type(value).__name__,
)  # fmt: skip
def test_verdict_is_that_of_torch(tmp_path: Path, value: Any) -> None:
    for options in ({}, {"_use_new_zipfile_serialization": False}, {"pickle_protocol": 4}):
        file = tmp_path / "value.pt"
        if isinstance(value, dict) and "_use_new_zipfile_serialization" in options:
            value = {key: inner for key, inner in value.items() if key != "new"}
        torch.save(value, file, **options)
        said = labels(checkpoint.read(file))["load"]
        assert verdict(file) in said, (said, options)


def test_saved_from_cards(tmp_path: Path) -> None:
    file = tmp_path / "cards.pt"
    with virtual_gpus(2):
        torch.save({"w": torch.ones(3, device="cuda:1"), "b": torch.ones(2)}, file)
        assert "works here and puts 1 on cuda:1, 1 on cpu" in labels(checkpoint.read(file))["load"]
    with virtual_gpus(1):
        here = checkpoint.read(file)
        assert "saved from cuda:1, but torch.cuda.device_count() is 1" in labels(here)["load"]
    found = checkpoint.read(file)
    assert found.bytes_by_device == {"cuda:1": 12, "cpu": 8}
    assert "torch.cuda.is_available() is False" in labels(found)["load"]
    assert verdict(file) == "fails here"
    (fix,) = found.fixes
    assert fix.setup == f"checkpoint = torch.load({str(file)!r}, map_location='cpu')"
    space: dict[str, Any] = {"torch": torch}
    exec(fix.setup, space)
    assert space["checkpoint"]["w"].device.type == "cpu"


HOSTILE = {
    "system": Calls(os.system, "touch ran"),
    "eval": Calls(eval, "open('ran', 'w')"),
    "exec": Calls(exec, "open('ran', 'w')"),
    "open": Calls(open, "ran", "w"),
    "getattr": Calls(getattr, os, "getcwd"),
    "nested": [{"a": (Calls(os.mkdir, "ran"),)}],
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_pickles_are_listed_and_never_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.chdir(tmp_path)
    if name == "getattr":
        (tmp_path / "plain.pkl").write_bytes(b"cbuiltins\ngetattr\n(cos\nsystem\nVx\ntR.")
    else:
        torch.save({"x": torch.ones(2), "h": HOSTILE[name]}, "zip.pt")
        torch.save({"x": torch.ones(2), "h": HOSTILE[name]}, "legacy.pt", _use_new_zipfile_serialization=False)
        (tmp_path / "plain.pkl").write_bytes(b"\x80\x04" + pickle.dumps(HOSTILE[name], 4)[2:])
    before = set(sys.modules)
    for file in sorted(tmp_path.glob("*.p*")):
        if name == "getattr":
            with pytest.raises(ValueError, match="no checkpoint"):
                checkpoint.read(file)
            continue
        found = checkpoint.read(file)
        assert "unpickling it would call" in labels(found)["danger"]
        assert not found.fixes
    assert not (tmp_path / "ran").exists()
    assert set(sys.modules) - before <= {name for name in sys.modules if name.startswith(("ipydevice", "torch"))}


def test_the_hostile_ones_do_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Loading them for real does what the list says; so the test above could fail."""
    monkeypatch.chdir(tmp_path)
    torch.save(HOSTILE["system"], "zip.pt")
    torch.load("zip.pt", weights_only=False)
    assert (tmp_path / "ran").exists()


def zipped(tmp_path: Path, content: bytes) -> Path:
    file = tmp_path / "made.pt"
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("made/data.pkl", content)
    return file


@pytest.mark.parametrize(
    "content",
    [
        b"", b"\x80\x02", b"\x80\x02.", b"\xff\xff", b"(((((", b"\x80\x02}q\x00(X\x03", b"0.", b"t.", b"R.",
        b"\x80\x05\x8e" + struct.pack("<Q", 2**62), b"\x8a\xff" + b"1" * 10, b"I" + b"9" * 5000 + b"\n.", b"h\x05.",
        b"]" + b"q\x00(" * 50 + b".", b"]q\x00h\x00a.", b"}q\x00h\x00h\x00s.", b"]" + b"(l" * 5000 + b".", b"b.",
        b"ccollections\nOrderedDict\n)Rq\x00(Vx\nh\x00u.", b"(Vstorage\ntQ.", b"\x97.", b"c\n\n.", b"\x82\x01.",
        b"\x80\x02NR.", b"\x81.",
    ],
)  # fmt: skip
def test_damaged_pickles_do_not_break_the_table(tmp_path: Path, content: bytes) -> None:
    found = checkpoint.read(zipped(tmp_path, content))
    assert found.title.startswith("made.pt")
    json.dumps(found.to_dict())


def test_every_cut_of_a_file_is_survived(tmp_path: Path) -> None:
    whole, file = tmp_path / "whole.pt", tmp_path / "cut.pt"
    torch.save({"x": torch.ones(4), "y": [torch.ones(2)]}, whole, _use_new_zipfile_serialization=False)
    content = whole.read_bytes()
    for end in range(0, len(content), 7):
        file.write_bytes(content[:end])
        try:
            notes = labels(checkpoint.read(file))
        except ValueError:
            continue
        assert "damage" in notes or "refuses" in notes["load"], end


def test_missing_storages_are_told(tmp_path: Path) -> None:
    file, cut = tmp_path / "model.pt", tmp_path / "cut.pt"
    torch.save({"x": torch.ones(4)}, file)
    with zipfile.ZipFile(file) as old, zipfile.ZipFile(cut, "w") as new:
        for name in old.namelist():
            if "/data/" not in name:
                new.writestr(name, old.read(name))
    assert "storage 0 is missing" in labels(checkpoint.read(cut))["damage"]


def safetensors(path: Path, header: Any, data: bytes = b"\0" * 8) -> Path:
    """The format is eight bytes of length, JSON, data (https://huggingface.co/docs/safetensors)."""
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)
    return path


WEIGHT = {"dtype": "F16", "shape": [2, 2], "data_offsets": [0, 8]}


def test_safetensors(tmp_path: Path) -> None:
    file = safetensors(tmp_path / "model.safetensors", {"__metadata__": {"format": "pt"}, "fc.weight": WEIGHT})
    (row,) = checkpoint.read(file).rows
    assert (row.name, row.shape, row.dtype, row.bytes) == ("['fc.weight']", (2, 2), "float16", 8)
    assert "keeps no devices" in labels(checkpoint.read(file))["load"]
    outside = safetensors(file, {"w": WEIGHT | {"data_offsets": [0, 99]}})
    assert "outside the file" in labels(checkpoint.read(outside))["damage"]


@pytest.mark.parametrize("header", [b"[]", b"{", b"[" * 100_000, b"\xff\xfe{}"])
def test_safetensors_that_are_none(tmp_path: Path, header: bytes) -> None:
    with pytest.raises(ValueError, match="no safetensors file"):
        checkpoint.read(safetensors(tmp_path / "x.safetensors", header))


def test_sharded_checkpoint(tmp_path: Path) -> None:
    safetensors(tmp_path / "a.safetensors", {"x": WEIGHT})
    torch.save({"y": torch.ones(2)}, tmp_path / "b.bin")
    shards = {"x": "a.safetensors", "y": "b.bin", "z": "gone.bin", "w": "../../etc/passwd"}
    index = tmp_path / "model.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": shards}))
    found = checkpoint.read(index)
    assert [(row.name, row.note) for row in found.rows] == [("['x']", "a.safetensors"), ("['y']", "b.bin")]
    damage = " ".join(text for label, text in found.notes if label == "damage")
    assert "gone.bin: No such file" in damage
    assert "../../etc/passwd lies outside the folder" in damage


@pytest.mark.parametrize(
    ("content", "words"),
    [(b"", "is empty"), (b"hello world, no checkpoint", "is no checkpoint"), (b"PK\x03\x04junk", "damaged")],
)
def test_what_is_no_checkpoint_says_so(tmp_path: Path, content: bytes, words: str) -> None:
    file = tmp_path / "x.pt"
    file.write_bytes(content)
    with pytest.raises(ValueError, match=words):
        checkpoint.read(file)


def test_more_tensors_than_are_listed_are_counted_all_the_same(tmp_path: Path) -> None:
    count = 100_003
    file = tmp_path / "many.pt"
    torch.save({"first": torch.ones(2), "rest": list(torch.ones(count - 2).unbind()), "last": torch.ones(7)}, file)
    found = checkpoint.read(file)
    assert (len(found.rows), found.left) == (100_000, 3)
    assert found.title == "many.pt (torch.save): 100,003 tensors in 3 storages"
    assert "puts 100,003 on cpu" in labels(found)["load"]
    assert found.bytes_by_device == {"cpu": 4 * (2 + count - 2 + 7)}
    header = {f"w{i}": WEIGHT | {"data_offsets": [8 * i, 8 * i + 8]} for i in range(count)}
    safetensors(tmp_path / "many.safetensors", {"__metadata__": {}} | header, b"\0" * 8 * count)
    index = tmp_path / "many.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": dict.fromkeys(header, "many.safetensors")}))
    for name in (tmp_path / "many.safetensors", index):
        found = checkpoint.read(name)
        assert (len(found.rows), found.left, found.bytes_by_device) == (100_000, 3, {"file": 8 * count})
        assert "damage" not in labels(found)
        assert not found.at_least


def test_what_lies_too_deep_is_told(tmp_path: Path) -> None:
    file = tmp_path / "deep.pt"
    value: Any = torch.ones(1)
    for _ in range(50):
        value = {"k" * 60: value}
    torch.save({"x": torch.ones(2), "deep": value}, file)
    found = checkpoint.read(file)
    assert found.at_least
    assert "at least 1 tensor in 1 storage" in found.title
    assert "puts at least 1 on cpu" in labels(found)["load"]


def test_filters_say_when_nothing_is_left(tmp_path: Path) -> None:
    from ipydevice.listing import refine

    file = tmp_path / "model.pt"
    torch.save({"x": torch.ones(2), "m": torch.ones(3, device="meta")}, file)
    everything: dict[str, Any] = {"device": None, "kind": None, "odd_only": False, "sort": None}
    nothing = refine(checkpoint.read(file), **everything | {"kind": "parameter"})
    assert ("note", "nothing of kind parameter among 2 names with a device") in nothing.notes
    assert refine(checkpoint.read(file), **everything | {"device": "cpu"}).bytes_by_device == {"cpu": 8}


def test_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from ipydevice.__main__ import main

    file = tmp_path / "model.pt"
    torch.save({"x": torch.ones(2)}, file)
    assert main(["checkpoint", str(file)]) == 0
    assert "1 tensor in 1 storage" in capsys.readouterr().out
    assert main(["checkpoint", str(file), str(tmp_path / "gone.pt")]) == 2
    assert "gone.pt: No such file" in capsys.readouterr().err
    assert checkpoint.main([]) == 2
