"""`to_device`: every nesting, types and sharing kept, nothing skipped silently."""

from __future__ import annotations

import collections
import dataclasses
import pathlib
import types
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn.utils.rnn import pack_sequence
from torch.utils.data import DataLoader

import ipydevice
from ipydevice import device_of, to_device


class Batch(NamedTuple):
    x: torch.Tensor
    label: str


class Listed(list[Any]):
    note = ""


class Marked(torch.Tensor):
    """A tensor subclass without functions of its own."""


@dataclasses.dataclass(frozen=True, slots=True)
class Frozen:
    x: torch.Tensor
    n: int = 3


@dataclasses.dataclass
class Loose:
    x: torch.Tensor
    y: Any = dataclasses.field(init=False, default=None)


class Own:
    def __init__(self, x: torch.Tensor) -> None:
        self.x = x

    def to(self, device: Any) -> Own:
        return Own(self.x.to(device))


class Holder:
    def __init__(self) -> None:
        self.inner = {"mask": torch.ones(2)}


def t() -> torch.Tensor:
    return torch.ones(2)


@pytest.mark.parametrize(
    "make",
    [
        t,
        lambda: [t(), 1, "a", None],
        lambda: (t(), (t(),)),
        lambda: Batch(t(), "cat"),
        lambda: {"x": t(), 3: [t()], ("a", 1): t()},
        lambda: collections.OrderedDict(b=t(), a=t()),
        lambda: collections.deque([t()], maxlen=4),
        lambda: collections.UserDict(x=t()),
        lambda: {t()},
        lambda: frozenset([t()]),
        lambda: Frozen(t()),
        lambda: Loose(t()),
        lambda: types.SimpleNamespace(x=t(), path=pathlib.Path()),
        lambda: Own(t()),
        lambda: pack_sequence([t(), t()]),
        lambda: torch.max(torch.eye(2), dim=0),
        lambda: t().to_sparse(),
        lambda: t().as_subclass(Marked),
        lambda: nn.Linear(2, 2),
    ],
)
def test_types_stay_and_everything_arrives(make: Any) -> None:
    before = make()
    moved = to_device(before, "cuda:1")
    assert type(moved) is type(before)
    assert device_of(moved) == torch.device("cuda:1")
    if not isinstance(before, nn.Module):  # which moves in place, as its own `to` does
        assert device_of(before) == torch.device("cpu")
    assert to_device(moved, "cuda:1") is moved or isinstance(before, Own)


def test_what_containers_have_beside_their_items_stays() -> None:
    listed = Listed([t()])
    listed.note = "kept"
    counts: collections.defaultdict[str, Any] = collections.defaultdict(list, x=t())
    loose = Loose(t())
    loose.y = t()
    moved = to_device((listed, counts, collections.deque([t()], maxlen=4), loose), "cuda")
    assert moved[0].note == "kept"
    assert moved[1]["new"] == []
    assert moved[2].maxlen == 4
    assert moved[3].y.device == torch.device("cuda:0")
    assert list(to_device(collections.OrderedDict(b=t(), a=t()), "cuda")) == ["b", "a"]


def test_one_tensor_under_two_names_stays_one() -> None:
    x, shared = t(), [t()]
    moved = to_device({"a": x, "b": [x], "c": shared, "d": shared}, "cuda")
    assert moved["a"] is moved["b"][0]
    assert moved["c"] is moved["d"]


def test_no_copy_of_what_is_there() -> None:
    there = torch.ones(2, device="cuda:0")
    data = {"x": there, "meta": ["a", 1]}
    assert to_device(data, "cuda") is data
    moved = to_device([there, t()], "cuda")
    assert moved[0] is there
    plain = {"n": 1}
    assert to_device([plain, t()], "cuda")[0] is plain


def test_devices_by_number_and_by_current_card() -> None:
    torch.cuda.set_device(1)
    try:
        assert to_device(t(), "cuda").device == torch.device("cuda:1")
        assert to_device(t(), 0).device == torch.device("cuda:0")
    finally:
        torch.cuda.set_device(0)
    assert to_device([torch.ones(2, device="cuda")], "cpu")[0].device.type == "cpu"


def test_gradients_flow_through() -> None:
    x = torch.ones(2, requires_grad=True)
    to_device([x], "cuda")[0].sum().backward()
    assert x.grad is not None
    assert x.grad.tolist() == [1, 1]


def test_pinned_on_the_way() -> None:
    assert to_device([t()], "cuda", pin=True)[0].tolist() == [1, 1]
    assert not to_device([torch.ones(1, device="cuda")], "cpu", pin=True)[0].is_pinned()


@pytest.mark.parametrize(
    ("data", "said"),
    [
        ({"meta": Holder()}, r"data\['meta'\] cannot be moved to cuda:0: .*Holder with a tensor at \.inner\['mask'\]"),
        ([np.ones(2)], r"data\[0\] cannot be moved .*numpy array is no tensor: torch.as_tensor\(\), or skip="),
        ({"rows": (row for row in [1])}, r"data\['rows'\] .*generator gives its items later: move each of them"),
        ([DataLoader([torch.ones(1)])], "DataLoader.*move each batch in the loop"),  # type: ignore[arg-type]
        ((torch.optim.SGD([torch.ones(1, requires_grad=True)], 0.1),), "SGD.*make it after the model was moved"),
        ({"w": nn.Parameter(torch.ones(1))}, r"data\['w'\] is a parameter on cpu.*move the module that owns it"),
        ({torch.ones(1): 3}, "has tensors as keys"),
        ([torch.Generator()], r"torch.Generator\(device\)"),
    ],
)
def test_what_cannot_be_moved_is_named(data: Any, said: str) -> None:
    with pytest.raises(TypeError, match=f"(?s){said}"):
        to_device(data, "cuda")


def test_a_method_of_that_name_which_moves_nothing() -> None:
    class Length:
        def to(self, unit: str) -> str:
            raise ValueError(f"no unit: {unit}")

    length = Length()
    assert to_device([length, t()], "cuda")[0] is length


def test_a_parameter_that_is_there_stays() -> None:
    parameter = nn.Parameter(torch.ones(1, device="cuda"))
    assert to_device([parameter], "cuda")[0] is parameter


def test_skipped_by_name() -> None:
    array, held = np.ones(2), Holder()
    moved = to_device([array, held, t()], "cuda", skip=(np.ndarray, Holder))
    assert moved[0] is array
    assert moved[1] is held
    assert to_device([len, str, pathlib.Path("a"), 2.5], "cuda")[0] is len


def test_pytorchs_own_refusal_names_the_place() -> None:
    with pytest.raises(NotImplementedError, match="Cannot copy out of meta tensor") as caught:
        to_device({"a": [torch.ones(2, device="meta")]}, "cuda")
    assert caught.value.__notes__ == ["to_device: this was data['a'][0]"]


def test_a_circle() -> None:
    circle: list[Any] = [t()]
    circle.append(circle)
    with pytest.raises(ValueError, match=r"data\[1\] contains itself"):
        to_device(circle, "cuda")


@pytest.mark.parametrize(
    ("device", "kind", "said"),
    [("gpu", ValueError, "expected a device such as .* got 'gpu'"), (None, TypeError, "of type NoneType"),
     (True, TypeError, "of type bool")],
)  # fmt: skip
def test_devices_that_are_none(device: Any, kind: type[Exception], said: str) -> None:
    with pytest.raises(kind, match=said):
        ipydevice.to_device([], device)
