"""Expressions on live objects: the very object that Python would give, or MISSING, and nothing of the user's runs."""

from __future__ import annotations

import collections
import functools
import types
from dataclasses import dataclass
from typing import Any, NamedTuple

import pytest
import torch
from failing import expression
from torch import nn

from ipydevice.diagnose.evaluate import MISSING, Scope, attribute, item, value


class Pair(NamedTuple):
    first: torch.Tensor
    second: torch.Tensor


@dataclass
class Batch:
    x: torch.Tensor
    parts: dict[str, torch.Tensor]


class Slotted:
    __slots__ = ("inner", "unset")

    def __init__(self) -> None:
        self.inner = torch.ones(1)


class Net(nn.Module):
    scale = torch.ones(2)  # of the class

    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(2, 2)
        self.register_buffer("table", torch.ones(2))
        self.plain = torch.ones(2)
        self.blocks = nn.Sequential(nn.Linear(2, 2), nn.ReLU(), nn.Sequential(nn.Linear(2, 2)))
        self.heads = nn.ModuleDict({"age": nn.Linear(2, 1)})
        self.list = nn.ModuleList([nn.Linear(2, 2), nn.Linear(2, 2)])
        self.params = nn.ParameterList([nn.Parameter(torch.ones(1)), nn.Parameter(torch.ones(1))])
        self.named = nn.ParameterDict({"a": nn.Parameter(torch.ones(1))})
        self.kept: dict[Any, torch.Tensor] = {"a": torch.ones(1), (1, "b"): torch.ones(1)}

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.fc(x)

    @staticmethod
    def helper() -> None: ...


NAMES: dict[str, Any] = {
    "torch": torch,
    "nn": nn,
    "x": torch.ones(3),
    "net": Net(),
    "d": {"a": torch.ones(1), 3: torch.ones(1), (1, 2): torch.ones(1), "in": {"b": [torch.ones(1)]}},
    "od": collections.OrderedDict(a=torch.ones(1)),
    "dd": collections.defaultdict(list, a=torch.ones(1)),
    "xs": [torch.ones(1), torch.ones(1), (torch.ones(1),)],
    "pair": Pair(torch.ones(1), torch.ones(1)),
    "batch": Batch(torch.ones(1), {"m": torch.ones(1)}),
    "user": collections.UserDict(a=torch.ones(1)),
    "slotted": Slotted(),
    "key": "a",
    "number": 1,
    "space": types.SimpleNamespace(x=torch.ones(1)),
    "loss": functools.partial(nn.functional.cross_entropy, weight=torch.ones(2)),
}


def scope() -> Scope:
    return Scope(NAMES, {})


FOUND = """
x
net.fc
net.fc.weight
net.fc.bias
net.table
net.plain
net.scale
net.blocks
net.blocks[0]
net.blocks[-1]
net.blocks[2][0].weight
net.heads
net.heads['age']
net.heads['age'].weight
net.list[0]
net.list[-1].bias
net.list[number]
net.params[0]
net.params[-1]
net.named['a']
net.kept['a']
net.kept[(1, 'b')]
net.kept[1, 'b']
d['a']
d[3]
d[(1, 2)]
d[1, 2]
d['in']['b'][0]
d[key]
od['a']
dd['a']
xs[0]
xs[-1]
xs[-1][0]
xs[number]
pair[0]
pair[-1]
batch.x
batch.parts['m']
user['a']
slotted.inner
space.x
torch.nn.functional
nn.Linear
len
loss.keywords['weight']
net.blocks[2]
net.blocks[-3]
pair.first
pair.second
"""
EQUAL = {
    "3": 3, "-1": -1, "-1.5": -1.5, "'a'": "a", "None": None, "True": True, "b'x'": b"x", "...": ...,
    "(1, 'a')": (1, "a"), "[1, 2]": [1, 2], "()": (), "list((1, 2))": [1, 2], "tuple([1])": [1],
}  # fmt: skip
GONE = """
nothing
net.nothing
net.fc.nothing.more
net.unset
slotted.unset
d['nothing']
d[4]
dd['nothing']
xs[3]
xs[-4]
xs['a']
pair['a']
net.blocks[3]
net.blocks[-4]
net.list['7']
user['nothing']
torch.nothing
x.shape
x.T
x.device
x[0]
x + x
x is x
-x
not x
net(x)
net.fc(x)
net.parameters()
net.state_dict()
d.get('a')
d.pop('a')
d.keys()
user.values()
xs.pop()
sorted(xs)
[x for x in xs]
{'a': x}
{x}
f'{x}'
(lambda: x)()
x if x else x
net.helper()
nothing[0]
xs[nothing]
[x, nothing]
batch.parts[batch]
x.grad
"""


@pytest.mark.parametrize("text", FOUND.split("\n")[1:-1])
def test_the_same_object_as_python_gives(text: str) -> None:
    wanted = eval(text, dict(NAMES))
    assert value(expression(text), scope()) is wanted


@pytest.mark.parametrize(("text", "wanted"), EQUAL.items())
def test_constants_and_displays(text: str, wanted: object) -> None:
    assert value(expression(text), scope()) == wanted


@pytest.mark.parametrize("text", GONE.split("\n")[1:-1])
def test_what_would_have_to_run_is_missing(text: str) -> None:
    assert value(expression(text), scope()) is MISSING
    assert "nothing" not in NAMES["dd"]  # a defaultdict makes what is asked of it


def test_missing_says_so() -> None:
    assert repr(MISSING) == "MISSING"
    assert value(None, scope()) is MISSING


@pytest.mark.parametrize("text", ["d.values()", "od.values()"])
def test_values_of_plain_dictionaries(text: str) -> None:
    wanted = list(eval(text, dict(NAMES)))
    found = value(expression(text), scope())
    assert [id(part) for part in found] == [id(part) for part in wanted]


def test_methods_are_bound() -> None:
    found = value(expression("net.forward"), scope())
    assert found.__self__ is NAMES["net"] and found.__func__ is Net.forward
    assert value(expression("net.helper"), scope()) is Net.helper


def test_grad_of_a_leaf() -> None:
    leaf = torch.ones(2, requires_grad=True)
    (leaf * 2).sum().backward()
    assert attribute(leaf, "grad") is leaf.grad
    branch = leaf * 2
    assert attribute(branch, "grad") is MISSING  # reading it warns
    assert attribute(leaf, "data").data_ptr() == leaf.data_ptr()


def test_an_attribute_that_the_user_has_put_on_a_tensor() -> None:
    tensor = torch.ones(2)
    tensor.mask = torch.zeros(2)  # type: ignore[attr-defined]
    assert attribute(tensor, "mask") is tensor.mask  # type: ignore[attr-defined]


def test_a_tensor_as_key_is_found_by_identity() -> None:
    one, two = torch.ones(1), torch.ones(1)
    table = {one: "one", two: "two"}
    assert item(table, two) == "two"
    assert item(table, torch.ones(1)) is MISSING


def test_names_of_a_frame_before_globals_before_builtins() -> None:
    inner = Scope({"x": 1}, {"x": 2, "y": 3, "len": 4})
    assert [value(expression(t), inner) for t in ("x", "y", "len")] == [1, 3, 4]
    assert value(expression("max"), inner) is max
    assert value(expression("(z := 3)"), Scope({"z": 5}, {})) == 5  # it has run: the name holds it


# Hostile objects ---------------------------------------------------------------------------------

ASKED = """
o | o.x | o.x.y | o.weight | o['x'] | o[0] | o[-1] | o['x'][0] | o.device | o.grad | o.data | o.values() | list(o)
o.cached | o.other | o[o] | plain[o] | o.data['x'] | o._parameters | [o, o] | (o, 1)[0] | o.inner | o.unset | -o
o + o | o == o | o(o) | o.T | o.__class__ | o.__dict__ | o[0, 'x'] | o['OddKey'] | module.a
"""


def test_nothing_of_a_hostile_object_runs() -> None:
    import hostile

    counter = hostile.Counter()
    corpus = list(hostile.corpus(counter))
    assert len(corpus) > 300
    asked = [(text.strip(), expression(text.strip())) for line in ASKED.strip().split("\n") for text in line.split("|")]
    ran = []
    with hostile.armed(counter):
        for name, live in corpus:
            names = {"o": live, "plain": {"x": 1}}
            for text, node in asked:
                try:
                    value(node, Scope(names, {}))
                except AssertionError:
                    ran.append(f"{text}: {name}")
                assert not counter.ran or ran, counter.ran
    assert not ran, f"{len(ran)}: {ran[:20]}"


def test_hostile_objects_are_still_read() -> None:
    import hostile

    counter = hostile.Counter()
    corpus = dict(hostile.corpus(counter))
    with hostile.armed(counter):
        read = {
            name: value(expression(text), Scope({"o": corpus[name]}, {}))
            for name, text in {
                "all of Plain": "o.x",
                "metaclass of Plain": "o.x",
                "all of dict": "o['x']",
                "all of list": "o[0]",
                "all of tuple": "o[-1]",
                "all of OrderedDict": "o['x']",
                "all of Module": "o.weight",
                "__getattr__ of Module": "o.weight",
                "__missing__ of UserDict": "o.data['x']",
                "slots": "o.inner",
            }.items()
        }
    assert {name for name, found in read.items() if found is MISSING} == set()


def test_a_lazy_module_imports_nothing() -> None:
    class Lazy(types.ModuleType):
        def __getattr__(self, name: str) -> Any:
            raise AssertionError(f"{name} was imported")

        def __getattribute__(self, name: str) -> Any:
            raise AssertionError(f"{name} was asked for")

    lazy = Lazy("lazy")
    types.ModuleType.__getattribute__(lazy, "__dict__")["there"] = 3
    assert attribute(lazy, "there") == 3
    assert attribute(lazy, "absent") is MISSING


class Config:
    weights = torch.ones(2)

    def method(self) -> None: ...

    @staticmethod
    def helper() -> None: ...

    @classmethod
    def made(cls) -> None: ...

    @property
    def device(self) -> str:
        raise AssertionError("a property ran")


class Inherits(Config): ...


@pytest.mark.parametrize("cls", [Config, Inherits])
def test_attributes_of_a_class(cls: type) -> None:
    assert attribute(cls, "weights") is Config.weights
    assert attribute(cls(), "weights") is Config.weights
    assert attribute(cls, "method") is Config.method
    assert attribute(cls, "helper") is Config.helper
    assert attribute(cls, "made") is MISSING
    assert attribute(cls, "device") is MISSING
    assert attribute(cls(), "device") is MISSING
    assert attribute(Pair, "first") is MISSING
    assert attribute(Slotted, "inner") is MISSING
