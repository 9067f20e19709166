"""What is odd in a workspace, on virtual cards; and what is not."""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch import nn

from ipydevice.listing import list_namespace
from ipydevice.virtual import virtual_gpus


@pytest.fixture(autouse=True)
def cards() -> Iterator[None]:
    with virtual_gpus(2):
        yield


def odd(space: dict[str, Any], *cells: str) -> dict[str, str]:
    return {row.name: row.odd for row in list_namespace(space, cells=cells).rows if row.odd}


def run(*cells: str) -> dict[str, str]:
    """What is odd after the cells, which all run without an error unless they end in ``# fails``."""
    space: dict[str, Any] = {"torch": torch, "nn": nn, "F": nn.functional}
    for cell in cells:
        text = textwrap.dedent(cell)
        try:
            exec(compile(text, "<cell>", "exec"), space)
        except RuntimeError:
            assert text.rstrip().endswith("# fails"), text
    return odd(space, *map(textwrap.dedent, cells))


class Positions(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(3, 3)
        self.pe = torch.ones(5, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.fc(x) + self.pe[: x.size(0)]


def test_attribute_that_a_move_leaves_behind() -> None:
    words = "pe on cpu, which .to() does not move: register_buffer"
    assert odd({"net": Positions().cuda()}) == {"net": words}
    assert odd({"net": Positions()}) == {}
    deeper = nn.Sequential(nn.Linear(3, 3), Positions()).cuda()
    assert odd({"net": deeper}) == {"net": "[1]." + words}


def body(method: Callable[..., Any]) -> dict[str, str]:
    """What is odd of a module on a card with host tensors, layers and a list, whose forward is this one."""

    class Net(nn.Module):
        forward = method

        def __init__(self) -> None:
            super().__init__()
            self.fc = nn.Linear(3, 3)
            self.pe = torch.ones(5, 3)
            self.heads = [nn.Linear(3, 3)]
            self.rows: list[torch.Tensor] = [torch.ones(3)]
            self.scale = torch.tensor(2.0)

        def offset(self) -> torch.Tensor:
            return self.pe

        def shifted(self, x: torch.Tensor) -> torch.Tensor:
            return x + self.pe

        @property
        def first(self) -> torch.Tensor:
            return self.pe[0] * 2

    return odd({"net": Net().cuda()})


def is_harmless_moved(self: Any, x: Any) -> Any:
    return x + self.pe.to(x.device)


def is_harmless_moved_item(self: Any, x: Any) -> Any:
    return x + self.pe[: x.size(0)].to(x.device)


def is_harmless_moved_alias(self: Any, x: Any) -> Any:
    pe = self.pe
    pe = pe.to(x.device)
    return x + pe


def is_harmless_collected(self: Any, x: Any) -> Any:
    self.rows.append(x.detach().cpu())
    return self.fc(x)


def is_harmless_stacked(self: Any, x: Any) -> Any:
    return torch.stack(self.rows).to(x.device) + self.fc(x)


def is_harmless_size(self: Any, x: Any) -> Any:
    return self.fc(x)[: self.pe.shape[0]] if self.pe is not None else x


def is_harmless_number(self: Any, x: Any) -> Any:
    return self.fc(x) * self.scale


def is_odd_operand(self: Any, x: Any) -> Any:
    return x + self.pe


def is_odd_item(self: Any, x: Any) -> Any:
    return self.pe[:2] * x


def is_odd_argument(self: Any, x: Any) -> Any:
    return torch.add(x, self.pe)


def is_odd_alias(self: Any, x: Any) -> Any:
    pe = self.pe
    return x + pe


def is_odd_method(self: Any, x: Any) -> Any:
    return self.shifted(x)


def is_odd_property(self: Any, x: Any) -> Any:
    return x + self.first


def is_odd_layers(self: Any, x: Any) -> Any:
    for head in self.heads:
        x = head(x)
    return x


def is_odd_layer(self: Any, x: Any) -> Any:
    return self.heads[0](x)


METHODS = [(name, method) for name, method in list(globals().items()) if name.startswith(("is_odd", "is_harmless"))]


@pytest.mark.parametrize(("name", "method"), METHODS, ids=[name for name, _ in METHODS])
def test_only_what_forward_computes_with_is_odd(name: str, method: Callable[..., Any]) -> None:
    assert inspect.isfunction(method)
    assert bool(body(method)) == name.startswith("is_odd")


def test_split_module() -> None:
    half = nn.Sequential(nn.Linear(2, 2).cuda(), nn.Linear(2, 2))
    assert odd({"net": half}) == {"net": "[1].weight, [1].bias on cpu, the rest on cuda:0: net.to('cuda:0')"}


def test_module_split_on_purpose() -> None:
    class Split(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a, self.b = nn.Linear(2, 2).to("cuda:0"), nn.Linear(2, 2).to("cuda:1")

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.b(self.a(x).to("cuda:1"))

    assert odd({"net": Split()}) == {}
    mapped = nn.Sequential(nn.Linear(2, 2).cuda(), nn.Linear(2, 2))
    mapped.hf_device_map = {"0": 0, "1": "cpu"}  # type: ignore[assignment]
    assert odd({"net": mapped}) == {}


def test_meta_leftovers() -> None:
    net = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2, device="meta"))
    assert odd({"net": net}) == {"net": "[1].weight, [1].bias still on meta: load the weights"}
    assert odd({"net": nn.Linear(2, 2, device="meta"), "x": torch.ones(2, device="meta")}) == {}


def test_optimizer_state_elsewhere() -> None:
    net = nn.Linear(2, 2)
    optimizer = torch.optim.Adam(net.parameters())
    net(torch.ones(1, 2)).sum().backward()
    optimizer.step()
    assert odd({"net": net, "opt": optimizer}) == {}
    net.cuda()
    net.zero_grad()
    words = "state[p]['exp_avg'] on cpu, net.weight on cuda:0: load or make the state after the move"
    assert odd({"net": net, "opt": optimizer}) == {"opt": words}


def test_step_of_an_optimizer_may_stay_on_the_host() -> None:
    net = nn.Linear(2, 2).cuda()
    optimizer = torch.optim.Adam(net.parameters())
    net(torch.ones(1, 2).cuda()).sum().backward()
    optimizer.step()
    optimizer.state[net.weight]["step"] = torch.tensor(1.0)
    listed = list_namespace({"net": net, "opt": optimizer}).rows
    assert [(row.device, row.odd) for row in listed] == [("cuda:0", ""), ("cuda:0", "")]


def test_optimizer_of_a_model_that_is_no_more() -> None:
    space: dict[str, Any] = {}
    model = nn.Linear(2, 2)
    space["opt"] = torch.optim.SGD(model.parameters(), lr=0.1)
    space["model"] = model
    assert odd(space) == {}
    space["model"] = nn.Linear(2, 2)
    assert odd(space) == {"opt": "its parameters are no longer those of model: make it again after model"}
    space["kept"] = [model]
    assert odd(space) == {}
    assert odd({"opt": space["opt"], "other": nn.Linear(5, 5)}) == {}


def test_gradient_elsewhere() -> None:
    p = nn.Parameter(torch.ones(3))
    p.sum().backward()
    p.data = p.data.cuda()
    words = "gradient on cpu: zero_grad() and backward() again"
    holder = nn.Module()
    holder.p = p
    assert odd({"p": p, "holder": holder}) == {"p": words, "holder": f"p: {words}"}


PASSED: list[tuple[str, str, str]] = [
    ("model(x)", "x", "on cpu, passed to model on cuda:0: x.to('cuda:0')"),
    ("model(x[:2])", "x", "on cpu, passed to model on cuda:0: x.to('cuda:0')"),
    ("model(x.view(-1, 3))", "x", "on cpu, passed to model on cuda:0: x.to('cuda:0')"),
    ("model(input=x)", "x", "on cpu, passed to model on cuda:0: x.to('cuda:0')"),
    ("model(*xs)", "xs", "on cpu, passed to model on cuda:0: move its tensors to cuda:0"),
    ("host(on_card)", "host", "on cpu, gets on_card on cuda:0: host.to('cuda:0')"),
    ("host(model(on_card))", "host", "on cpu, gets a tensor on cuda:0: host.to('cuda:0')"),
    ("loss(model(on_card), x)", "x", "on cpu, meets a tensor on cuda:0: x.to('cuda:0')"),
    ("F.mse_loss(on_card, x)", "x", "on cpu, meets a tensor on cuda:0: x.to('cuda:0')"),
    ("x * on_card", "x", "on cpu, meets a tensor on cuda:0: x.to('cuda:0')"),
]
SETUP = """
    model, host, loss = nn.Linear(3, 3).cuda(), nn.Linear(3, 3), nn.MSELoss()
    x, on_card = torch.ones(2, 3), torch.ones(2, 3).cuda()
    xs = [x]
    rows = [torch.ones(2, 3)]
"""


@pytest.mark.parametrize(("line", "name", "words"), PASSED, ids=[line for line, _, _ in PASSED])
def test_lines_in_which_devices_meet(line: str, name: str, words: str) -> None:
    assert run(SETUP, f"{line}  # fails") == {name: words}


RIGHT = [
    "model(x.cuda())",
    "host(x)",
    "loss(x, host(x))",
    "y = model(x.to('cuda'))\ny = y.cpu()\nz = y * x",
    "for i in range(2):\n    y = torch.ones(3).cuda()\n    model(y)\n    y = y.cpu()",
    "host(x)\nhost.cuda()\nhost(on_card)",
    "x = x.cuda()\nmodel(x)\nx = x.cpu()",
    "joined = xs + [on_card]",
    "scale = torch.tensor(2.0)\nz = on_card * scale\nF.mse_loss(on_card, on_card) * scale",
    "try:\n    model(x)\nexcept RuntimeError:\n    pass",
    "def f(x):\n    return model(x)\nf(on_card)",
    "f = lambda x: model(x)\nf(on_card)",
    "outs = [model(x) for x in [on_card]]",
    "parallel = nn.DataParallel(model)\nparallel(x)",
    "def borrow(m):\n    m.cuda()(on_card)\n    m.cpu()\nborrow(host)\nhost.cuda()(on_card)\nborrow(host)",
    "import contextlib\n@contextlib.contextmanager\ndef lent(m):\n    yield m.cuda()\n    m.cpu()\n"
    "with lent(host):\n    host(on_card)",
    "%matplotlib inline\n",
]


@pytest.mark.parametrize("line", RIGHT)
def test_lines_that_are_right(line: str) -> None:
    space: dict[str, Any] = {"torch": torch, "nn": nn, "F": nn.functional}
    setup = textwrap.dedent(SETUP)
    exec(setup, space)
    if not line.startswith("%"):
        exec(line, space)
    assert odd(space, setup, line) == {}


def test_lengths_may_be_on_the_host() -> None:
    assert (
        run("""
        class Encoder(nn.Module):
            def __init__(self):
                super().__init__()
                self.rnn = nn.GRU(3, 3, batch_first=True)
            def forward(self, x, lengths):
                return self.rnn(nn.utils.rnn.pack_padded_sequence(x, lengths, batch_first=True))
        enc = Encoder().cuda()
        x, lengths = torch.ones(2, 4, 3).cuda(), torch.tensor([4, 2])
        enc(x, lengths)
    """)
        == {}
    )


def test_one_name_on_a_second_card_by_a_literal() -> None:
    cells = [
        "model = nn.Linear(3, 3).to('cuda')\nx = torch.ones(3, device='cuda')",
        "w = torch.ones(3, device='cuda:1')",
    ]
    assert run(*cells) == {"w": "alone on cuda:1 by a literal, the rest on cuda:0"}
    assert run(*cells, "y = x.to('cuda:1') + w") == {}


def test_big_host_data_that_feeds_a_loop_without_pinning() -> None:
    setup = """
        from torch.utils.data import DataLoader, TensorDataset
        data = TensorDataset(torch.empty(20, 2**20))
        model = nn.Linear(20, 1).cuda()
        loader = DataLoader(data, batch_size=10, pin_memory={})
    """
    loop = "for (xb,) in loader:\n    y = xb.to('cuda')\ndel xb, y"
    words = "feeds cuda:0 from 80 MiB of unpinned host memory: pin_memory=True"
    assert run(setup.format("False"), loop) == {"loader": words}
    assert run(setup.format("True"), "pass") == {}
    assert run(setup.format("False"), "pass") == {}


LOOPS = {
    "for i in range(2):\n    y = big[i : i + 1].to('cuda')": True,
    "for i in range(2):\n    part = big[i]\n    y = part.cuda()": True,
    "i = 0\nwhile i < 2:\n    y = big[i].to('cuda')\n    i += 1": True,
    "for i in range(2):\n    part = big[i]": False,
    "y = big[0].to('cuda')": False,
    "for i in range(2):\n    y = small[i].to('cuda')": False,
    "big = big.pin_memory()\nfor i in range(2):\n    y = big[i].to('cuda')": False,
    "for i in range(2):\n    y = part_of[i].to('cuda')": False,
}


@pytest.mark.parametrize("loop", LOOPS)
def test_big_host_tensors_that_a_loop_moves_by_parts(loop: str) -> None:
    setup = """
        model = nn.Linear(2, 1).cuda()
        big, small = torch.empty(2, 10 * 2**20), torch.empty(2, 2)
        part_of = [small, small]
    """
    said = {"big": "80 MiB of unpinned host memory feed cuda:0 in a loop: pin_memory()"}
    assert run(setup, loop) == (said if LOOPS[loop] else {})


METRIC = """
    class Accuracy(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("right", torch.zeros(1))
        def update(self, outputs, labels):
            self.right += (outputs == labels).sum()
    metric = Accuracy().to({!r})
    outputs, labels = torch.ones(3).cuda(), torch.ones(3)
"""


def test_a_metric_on_a_card_that_gets_host_labels() -> None:
    words = "on cpu, passed to metric on cuda:0: labels.to('cuda:0')"
    assert run(METRIC.format("cuda"), "metric.update(outputs, labels)  # fails") == {"labels": words}
    assert run(METRIC.format("cuda"), "metric.update(outputs, labels.cuda())") == {}
    assert run(METRIC.format("cpu"), "metric.update(outputs.cpu(), labels)") == {}
    assert run(METRIC.format("cuda"), "seen = {}\nseen.update(labels=labels)") == {}


def test_gradient_where_its_parameter_is_and_a_leaf_without_one() -> None:
    net = nn.Linear(2, 2).cuda()
    net(torch.ones(1, 2).cuda()).sum().backward()
    assert odd({"net": net, "p": net.weight, "q": nn.Parameter(torch.ones(2).cuda())}) == {}


def test_what_only_a_dataset_or_loader_reads_is_right_on_the_host() -> None:
    assert (
        run(
            """
            from torch.utils.data import DataLoader, TensorDataset
            x, y = torch.ones(4, 3), torch.zeros(4, 1)
            data = TensorDataset(x, y)
            loader = DataLoader(data, batch_size=2)
            model, loss = nn.Linear(3, 1).cuda(), nn.MSELoss()
            """,
            "for xb, yb in loader:\n    l = loss(model(xb.cuda()), yb.cuda())\ndel xb, yb",
        )
        == {}
    )
