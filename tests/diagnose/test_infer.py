"""Where the result of an expression must be, checked against where PyTorch puts it."""

from __future__ import annotations

import collections
from typing import Any

import pytest
import torch
from failing import expression
from torch import nn

from ipydevice.diagnose.evaluate import Scope
from ipydevice.diagnose.infer import VIEWS, call_name, default_device, device, device_name, moved_to, with_index


@pytest.fixture
def names(cards: None) -> dict[str, Any]:
    return {
        "torch": torch, "nn": nn, "F": nn.functional, "th": torch,
        "x": torch.ones(3, 3, device="cuda:1"), "h": torch.ones(3, 3), "net": nn.Linear(3, 3).to("cuda:1"),
        "host": nn.Linear(3, 3), "d": torch.device("cuda:1"), "s": "cuda:1", "np": __import__("numpy"),
        "xs": [torch.ones(2, device="cuda:1")] * 2, "batch": {"a": torch.ones(2, device="cuda:1")},
        "split": nn.ModuleList([nn.Linear(3, 3), nn.Linear(3, 3).to("cuda:1")]), "zeros": torch.zeros,
        "i": torch.zeros(3, dtype=torch.int64, device="cuda:1"),
    }  # fmt: skip


# Every one is also run; what is inferred has to be where the result is.
TRUE = """
torch.zeros(3)
torch.zeros(3, device='cuda:1')
torch.zeros(3, device=d)
torch.zeros(3, device=s)
torch.zeros(3, device='cuda')
torch.zeros(3, device=x.device)
torch.zeros(3, device='cpu')
torch.arange(x.shape[0])
torch.arange(3, device=x.device)
zeros(3)
torch.tensor([1.])
torch.tensor([1.], device=d)
torch.as_tensor([1.])
torch.as_tensor(x)
torch.from_numpy(np.ones(3))
torch.eye(3)
torch.randn(3, 3)
torch.randperm(3)
torch.linspace(0, 1, 3)
torch.hann_window(4)
torch.full((2,), 1.)
torch.Tensor([1., 2.])
torch.zeros_like(x)
torch.ones_like(h)
torch.zeros_like(x, device='cpu')
torch.rand_like(h, device=d)
x.new_zeros(3)
x.new_tensor([1.])
h.new_ones(2)
x.new_zeros(3, device='cpu')
x.to('cpu')
x.to(h)
h.to(x)
h.to(d)
h.to(device=d)
h.to('cuda')
h.to('cuda:0')
h.to(x.device)
h.to(1)
x.to(torch.float64)
h.to(d, torch.float64)
h.cuda()
h.cuda(1)
x.cpu()
x.cpu().double()
x.cuda(0)
x.double()
x.float().t()
x.T
x.mT
x[0]
x[0, 1]
x[:, 0].sum()
x.sum()
x.view(-1)
x.clone().detach()
x + 1
1 + x
2 * x
x @ x
x + x
h @ h
-x
~(x > 0)
x > 0
x == x
x + torch.tensor(1., device=d)
x.mul(2)
x.add(1).mul(2).unsqueeze(0)
torch.cat([x, x])
torch.cat(xs)
torch.stack(xs)
torch.sin(x)
torch.matmul(x, x)
F.relu(x)
F.softmax(x, dim=-1)
torch.nn.functional.relu(h)
net(x)
host(h)
net(x).sum()
net.weight
net.weight.sum()
net.weight * 2
xs[0]
batch['a']
batch['a'] * 2
nn.Linear(3, 3).weight
nn.Linear(3, 3, device=d).weight
net.to('cpu')(h)
torch.eye(3)[i.cpu()]
th.zeros(2)
x if True else x
(x + x).relu()
[x for _ in range(2)][0]
F.one_hot(i, 3)
torch.relu(torch.zeros(2))
torch.zeros(2).to(d)
torch.zeros(2).cuda(1)
torch.ones(2, device=d).cpu()
"""
UNKNOWN = """
x.item()
x.tolist()
x.size(0)
x.dim()
x.numel()
split
split(x)
nothing
nothing.to('cpu').sum
x.shape
unknown_function(x)
x + h
x if True else h
(x, h)
torch.cat([x, h])
torch.zeros(2, device=nothing)
torch.load('file')
'text'
3
None
lambda: x
len(xs)
x.get_device()
x.stride()
"""


@pytest.mark.parametrize("text", TRUE.split("\n")[1:-1])
def test_agrees_with_pytorch(text: str, names: dict[str, Any]) -> None:
    inferred = device(expression(text), Scope(names, {}))  # first: what runs may move the module
    result = eval(text, dict(names))
    where = result.weight.device if isinstance(result, nn.Module) else result.device
    if inferred is None and text in CAUTIOUS:
        return
    assert inferred == str(where)


CAUTIOUS = (  # it would be right to say, and it is right not to: nothing but the syntax is looked at
    "nn.Linear(3, 3).weight", "nn.Linear(3, 3, device=d).weight", "net.to('cpu')(h)",
)  # fmt: skip


@pytest.mark.parametrize("text", UNKNOWN.split("\n")[1:-1])
def test_says_nothing_where_it_cannot_know(text: str, names: dict[str, Any]) -> None:
    assert device(expression(text), Scope(names, {})) is None


def test_modules_and_containers_as_a_whole(names: dict[str, Any]) -> None:
    scope = Scope(names, {})
    told = {text: device(expression(text), scope) for text in ("net", "host", "split", "split[1]", "xs", "batch")}
    assert told == {
        "net": "cuda:1", "host": "cpu", "split": None, "split[1]": "cuda:1", "xs": "cuda:1", "batch": "cuda:1",
    }  # fmt: skip
    assert device(expression("nn.Linear(3, 3)"), scope) == "cpu"
    assert device(expression("nn.Linear(3, 3, device=d)"), scope) == "cuda:1"
    assert device(expression("nn.Linear(3, 3).to(d)"), scope) == "cuda:1"
    assert device(expression("nn.Linear(3, 3).cuda()"), scope) == "cuda:0"


def test_under_a_default_device(names: dict[str, Any]) -> None:
    with torch.device("cuda:1"):
        assert default_device() == "cuda:1"
        assert device(expression("torch.zeros(3)"), Scope(names, {})) == "cuda:1"
        assert device(expression("torch.from_numpy(a)"), Scope(names, {})) == "cpu"
    assert default_device() == "cpu"


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ("cuda:0", "cuda:0"), ("cuda", "cuda"), ("meta", "meta"), ("hpu:3", "hpu:3"), (torch.device("xpu", 1), "xpu:1"),
        (torch.device("cpu"), "cpu"), (1, "cuda:1"), (None, None), (torch.float32, None), (1.5, None), ("", None),
        ("a file.pt", None), (True, None), (["cpu"], None),
    ],
)  # fmt: skip
def test_device_name(given: object, wanted: str | None, cards: None) -> None:
    assert device_name(given) == wanted


@pytest.mark.parametrize(
    ("given", "known", "wanted"),
    [
        ("cuda", (), "cuda:0"), ("cuda", ("cuda:1", "cpu"), "cuda:1"), ("cuda", ("cuda:1", "cuda:2"), "cuda:0"),
        ("cuda:3", ("cuda:1",), "cuda:3"), ("cpu", (), "cpu"), ("meta", (), "meta"), ("mps", (), "mps:0"),
        ("xpu", ("cuda:1",), "xpu:0"),
    ],
)  # fmt: skip
def test_with_index(given: str, known: tuple[str, ...], wanted: str) -> None:
    assert with_index(given, known) == wanted


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("torch.zeros(3)", "zeros"), ("zeros(3)", "zeros"), ("F.relu(x)", "relu"), ("torch.cat(xs)", "cat"),
        ("nn.Linear(3, 3)", "Linear"), ("nn.functional.cross_entropy(x, x)", "cross_entropy"), ("len(xs)", ""),
        ("x.to(d)", ""), ("mine(x)", ""), ("Counter()", ""), ("F.linear(x)", "linear"), ("torch.nothing(x)", "nothing"),
        ("nothing.cat(x)", ""), ("torch.linalg.norm(x)", "norm"), ("torch.fft.fft(x)", "fft"), ("d.type()", ""),
    ],
)  # fmt: skip
def test_call_name(text: str, wanted: str, names: dict[str, Any]) -> None:
    def mine(x: Any) -> Any:
        return x

    node = expression(text)
    assert call_name(node, Scope({**names, "mine": mine, "Counter": collections.Counter}, {})) == wanted  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("x.cpu()", "cpu"), ("x.cuda()", "cuda:0"), ("x.cuda(1)", "cuda:1"), ("x.xpu()", "xpu:0"),
        ("x.to(d)", "cuda:1"),
        ("x.to(h)", "cpu"), ("x.to(torch.float64)", None), ("x.to(dtype=torch.half)", None), ("x.to()", None),
        ("net.to_empty(device='cpu')", "cpu"), ("x.to(x.device)", "cuda:1"), ("x.to(nothing)", None), ("x.sum()", None),
        ("to(d)", None), ("x.to(nothing.device)", None), ("x.to(device='cuda')", "cuda:0"),
    ],
)  # fmt: skip
def test_moved_to(text: str, wanted: str | None, names: dict[str, Any]) -> None:
    assert moved_to(expression(text), Scope(names, {})) == wanted  # type: ignore[arg-type]


def test_views_are_views_of_pytorch() -> None:
    assert {name for name in VIEWS if not hasattr(torch.Tensor, name)} == set()


ASKED = """
o | o.x | o(x) | o.to('cpu') | x.to(o) | torch.zeros(3, device=o) | torch.cat([o]) | o + x | x > o | o.weight
o[0] | F.relu(o) | nn.Linear(3, 3, device=o) | o.cuda(o) | x.cuda(o) | o.sum() | o.x.view(-1) | [o for _ in o] | o.T
o(o) | o.zeros(3) | x.to(o.device) | torch.zeros(3, device=o.device) | (o, o) | torch.as_tensor(o)
"""


def test_nothing_of_a_hostile_object_runs(names: dict[str, Any]) -> None:
    import hostile

    counter = hostile.Counter()
    corpus = list(hostile.corpus(counter))
    asked = [(text.strip(), expression(text.strip())) for line in ASKED.strip().split("\n") for text in line.split("|")]
    ran = []
    with hostile.armed(counter):
        for name, live in corpus:
            scope = Scope({**names, "o": live}, {})
            for text, node in asked:
                try:
                    device(node, scope)
                except AssertionError:
                    ran.append(f"{text}: {name}")
    assert not ran, f"{len(ran)}: {ran[:20]}"
    assert not counter.ran


def test_hostile_classes_are_not_asked(names: dict[str, Any]) -> None:
    import hostile

    counter = hostile.Counter()
    strange = hostile.hostile_meta(counter)("Strange", (nn.Linear,), {})
    scope = Scope({**names, "Strange": strange}, {})
    with hostile.armed(counter):
        assert device(expression("Strange(3, 3)"), scope) == "cpu"
        assert device(expression("Strange.weight"), scope) is None
        assert device(expression("Strange(3, 3).to(d)"), scope) == "cuda:1"
    assert not counter.ran
