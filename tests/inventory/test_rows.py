"""A namespace as rows: which, in which order, with how many bytes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
import torch

from ipydevice.diagnosis import Inventory
from ipydevice.listing import frame_rows, list_namespace, select
from ipydevice.virtual import virtual_gpus


@pytest.fixture
def cards() -> Iterator[None]:
    with virtual_gpus(2):
        yield


def names(listed: Inventory) -> list[str]:
    return [row.name for row in listed.rows]


def test_order_kinds_and_bytes() -> None:
    net = torch.nn.Linear(3, 2)
    space: dict[str, Any] = {
        "zeta": torch.ones(2, 3), "alpha": torch.ones(4, device="meta"), "net": net,
        "opt": torch.optim.SGD(net.parameters(), lr=0.1), "batch": {"x": torch.ones(1)}, "n": 3, "torch": torch,
        "f": len, "Net": torch.nn.Linear, "text": "x", "g": torch.Generator(), "nothing": [1, 2],
    }  # fmt: skip
    listed = list_namespace(space)
    assert [(row.name, row.kind, row.device) for row in listed.rows] == [
        ("zeta", "tensor", "cpu"),
        ("alpha", "tensor", "meta"),
        ("net", "module", "cpu"),
        ("opt", "optimizer", "cpu"),
        ("batch", "container", "cpu"),
        ("g", "generator", "cpu"),
    ]
    rows = {row.name: row for row in listed.rows}
    assert (rows["zeta"].shape, rows["zeta"].dtype, rows["zeta"].bytes) == ((2, 3), "float32", 24)
    assert rows["net"].bytes == 32
    assert rows["net"].note == "2 tensors"
    assert listed.bytes_by_device == {"cpu": 24 + 32 + 4, "meta": 0}
    assert not any(row.odd for row in listed.rows)
    json.dumps(listed.to_dict())


def test_names_of_ipython_are_left_out() -> None:
    t = torch.ones(1)
    private = ["_", "__", "___", "_1", "_i", "_ii", "_i1", "_oh", "_ih", "_dh", "In", "Out", "exit", "quit", "__name__"]
    space = {**dict.fromkeys(private, t), "x": t, "_mine": t, "_iris": t, "outer": t}
    assert names(list_namespace(space)) == ["x", "_mine", "_iris", "outer"]


def test_shared_memory_counts_once_and_is_noted() -> None:
    big = torch.ones(100, 10)
    part = big[:1]
    listed = list_namespace({"big": big, "part": part, "again": big, "own": part.clone()})
    assert [row.note for row in listed.rows] == ["", "shares storage with big", "shares storage with big", ""]
    assert [row.bytes for row in listed.rows] == [4000, 40, 4000, 40]
    assert listed.bytes_by_device == {"cpu": 4040}
    assert not any(row.odd for row in listed.rows)
    # What a small view holds is all of its storage.
    assert list_namespace({"part": part}).bytes_by_device == {"cpu": 4000}


def test_tied_weights_count_once() -> None:
    class Tied(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embed = torch.nn.Embedding(10, 4)
            self.head = torch.nn.Linear(4, 10, bias=False)
            self.head.weight = self.embed.weight

    assert list_namespace({"net": Tied()}).rows[0].bytes == 160


@pytest.mark.usefixtures("cards")
def test_devices_of_a_workspace() -> None:
    net = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Linear(4, 4))
    net[0].to("cuda:1")
    space = {"x": torch.ones(8, device="cuda:0"), "net": net, "host": torch.ones(2), "view": None}
    space["view"] = space["x"][:2]
    listed = list_namespace(space)
    assert [row.device for row in listed.rows] == ["cuda:0", "cuda:1 + cpu", "cpu", "cuda:0"]
    assert listed.bytes_by_device == {"cuda:0": 32, "cuda:1": 80, "cpu": 88}
    assert names(select(space, device="cuda")) == ["x", "net", "view"]
    assert names(select(space, device="cuda:1")) == ["net"]
    assert names(select(space, device="cpu")) == ["net", "host"]
    assert select(space, device="cuda:1").bytes_by_device == {"cuda:1": 80}
    assert names(select(space, sort="bytes")) == ["net", "x", "host", "view"]
    assert names(select(space, sort="name")) == ["host", "net", "view", "x"]


def test_names_and_patterns() -> None:
    net = torch.nn.Sequential(torch.nn.Linear(2, 2))
    space = {"opt_a": torch.ones(1), "opt_b": torch.ones(1), "net": net, "d": {"q": torch.ones(3)}, "n": 3}
    assert names(select(space, names=["net", "opt*"])) == ["net", "opt_a", "opt_b"]
    assert names(select(space, names=["net[0].weight", 'd["q"]', "net[0]"])) == ["net[0].weight", 'd["q"]', "net[0]"]
    assert select(space, names=["net[0].weight"]).rows[0].shape == (2, 2)


@pytest.mark.parametrize(
    ("wish", "words"),
    [
        ({"names": ["nett"]}, "no name 'nett' with a device in this workspace; did you mean net?"),
        ({"names": ["n"]}, "n has no device: it is no tensor, module or optimizer and holds none"),
        ({"names": ["net.fc"]}, "no name 'net.fc' with a device"),
        ({"sort": "size"}, "sort is one of bytes, name, device, but got 'size'"),
    ],
)
def test_wrong_wishes_say_what_is_possible(wish: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError) as caught:  # noqa: PT011 (the text is compared below)
        select({"net": torch.nn.Linear(1, 1), "n": 3}, **wish)
    assert words in str(caught.value)


def test_verbose_opens_things_up() -> None:
    net = torch.nn.Sequential(torch.nn.Linear(2, 2, bias=False), torch.nn.BatchNorm1d(2))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
    net(torch.ones(3, 2)).sum().backward()
    optimizer.step()
    rows = select({"net": net, "opt": optimizer, "pair": [torch.ones(1)]}, verbose=True).rows
    assert [(row.name, row.kind) for row in rows[:9]] == [
        ("net", "module"),
        ("net[0]", "module"),
        ("net[0].weight", "parameter"),
        ("net[1]", "module"),
        ("net[1].weight", "parameter"),
        ("net[1].bias", "parameter"),
        ("net[1].running_mean", "buffer"),
        ("net[1].running_var", "buffer"),
        ("net[1].num_batches_tracked", "buffer"),
    ]
    state = next(row for row in rows if row.kind == "state")
    assert (state.name, state.note) == ("opt.state[p]['momentum_buffer']", "p is net[0].weight")
    assert rows[-1].name == "pair[0]"


@pytest.mark.usefixtures("cards")
def test_verbose_tells_the_devices_of_each_submodule_in_the_order_of_the_model() -> None:
    net = torch.nn.Sequential(
        torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Linear(2, 2)), torch.nn.ReLU(), torch.nn.Linear(2, 2)
    )
    net[0][1].to("cuda:1")
    net.extra = [torch.nn.Linear(1, 1)]  # type: ignore[assignment]
    net.register_forward_hook(lambda *_: None)
    rows = select({"net": net}, verbose=True).rows
    assert [(row.name, row.device, row.bytes) for row in rows if row.kind == "module"] == [
        ("net", "cpu + cuda:1", 80),
        ("net[0]", "cpu + cuda:1", 48),
        ("net[0][0]", "cpu", 24),
        ("net[0][1]", "cuda:1", 24),
        ("net[2]", "cpu", 24),
    ]
    assert [row.name for row in rows][-4:] == ["net[2].weight", "net[2].bias", *_of_extra]


_of_extra = ["net.extra[0].weight", "net.extra[0].bias"]


def test_locals_of_a_frame() -> None:
    local = {"self": torch.nn.Linear(1, 1), "x": torch.ones(2), "n": 3, "y": torch.ones(3)}
    rows = frame_rows(local, "In [3] train()", True, 10)
    assert [(row.name, row.frame, row.user) for row in rows] == [
        ("self", "In [3] train()", True),
        ("x", "In [3] train()", True),
        ("y", "In [3] train()", True),
    ]
    assert [row.name for row in frame_rows(local, "f()", False, 2)] == ["self", "x"]
    assert frame_rows(local, "f()", False, 0) == []


def test_other_mappings_than_dict() -> None:
    from collections import ChainMap

    assert names(list_namespace(ChainMap({"x": torch.ones(1)}))) == ["x"]


def test_many_kinds_do_not_break_the_table() -> None:
    class Frozen:
        def __init__(self) -> None:
            self.inner = torch.ones(2)

    data = torch.utils.data.TensorDataset(torch.ones(4, 2))
    sgd = torch.optim.SGD([torch.nn.Parameter(torch.ones(1))], lr=0.1)
    space = {
        "sparse": torch.eye(3).to_sparse(), "loader": torch.utils.data.DataLoader(data, pin_memory=False), "data": data,
        "packed": torch.nn.utils.rnn.pack_sequence([torch.ones(2, 1)]), "frozen": Frozen(),
        "scaler": torch.amp.GradScaler("cpu"), "sched": torch.optim.lr_scheduler.StepLR(sgd, 1), "f": lambda x=data: x,
    }  # fmt: skip
    rows = {row.name: row for row in list_namespace(space).rows}
    assert list(rows) == list(space)
    assert rows["sparse"].bytes == 60
    assert rows["loader"].bytes == 32
    assert rows["sched"].device == "cpu"
