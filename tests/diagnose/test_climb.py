"""From the failing line outwards to the user's own name for the stray, in real notebooks on virtual cards."""

from __future__ import annotations

from pathlib import Path

import pytest
from failing import Notebook

NET = "net = nn.Sequential(nn.Linear(3, 3), nn.ReLU(), nn.Linear(3, 2))"
FC = """class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(3, 2)
"""

# cells; the culprit's expression, its device, the cell in which this expression stands, what it met
NAMED: dict[str, tuple[str, str, str, int, str | None]] = {
    "on the line itself": (
        "x = torch.ones(3)\ny = torch.ones(3, device=DEV)\n---\nz = x * y",
        "x", "cpu", 2, "y",
    ),
    "a parameter's name is the caller's": (
        "def loss(pred, true):\n    return (pred - true).pow(2).sum()\n---\nout = torch.ones(3, device=DEV)\n"
        "labels = torch.ones(3)\n---\nloss(out, labels)",
        "labels", "cpu", 3, "pred",
    ),
    "through three functions": (
        "def a(x, y): return x + y\ndef b(u, v): return a(u, v)\ndef c(p, q): return b(p, q)\n---\n"
        "one = torch.ones(3, device=DEV)\ntwo = torch.ones(3)\nc(one, two)",
        "two", "cpu", 2, "x",
    ),
    "by keyword": (
        "def a(x, y): return x + y\n---\none = torch.ones(3, device=DEV)\ntwo = torch.ones(3)\na(y=two, x=one)",
        "two", "cpu", 2, "x",
    ),
    "through star arguments": (
        "def a(x, y): return x + y\ndef b(*args): return a(*args)\n---\none = torch.ones(3, device=DEV)\n"
        "two = torch.ones(3)\nb(one, two)",
        "two", "cpu", 2, "x",
    ),
    "through keyword dictionaries": (
        "def a(x, y): return x + y\ndef b(**kw): return a(**kw)\n---\none = torch.ones(3, device=DEV)\n"
        "two = torch.ones(3)\nb(x=one, y=two)",
        "two", "cpu", 2, "x",
    ),
    "through a decorator": (
        "import functools\ndef logged(f):\n    @functools.wraps(f)\n    def inner(*args, **kwargs):\n"
        "        return f(*args, **kwargs)\n    return inner\n@logged\ndef a(x, y):\n    return x + y\n---\n"
        "one = torch.ones(3, device=DEV)\ntwo = torch.ones(3)\na(one, two)",
        "two", "cpu", 2, "x",
    ),
    "through a partial": (
        "import functools\ndef a(x, y): return x + y\n---\none = torch.ones(3, device=DEV)\ntwo = torch.ones(3)\n"
        "f = functools.partial(a, one)\n---\nf(two)",
        "two", "cpu", 3, "x",
    ),
    "into a library's module and out again": (
        NET + ".to(DEV)\nx = torch.ones(1, 3)\n---\nout = net(x)",
        "x", "cpu", 2, "net",
    ),
    "out of a model's forward": (
        FC + "    def forward(self, inp):\n        return self.fc(inp)\n---\nnet = Net().to(DEV)\n"
        "batch = torch.ones(1, 3)\n---\nnet(batch)",
        "batch", "cpu", 3, None,
    ),
    "an item of a batch beside others": (
        "batch = {'x': torch.ones(3, 4, device=DEV), 'mask': torch.ones(3)}\nhidden = torch.ones(3, 4, device=DEV)\n"
        "---\nhidden * batch['mask'].unsqueeze(-1)",
        "batch['mask']", "cpu", 2, "hidden",
    ),
    "the model behind the data of its parameters": (
        "def update(a, b):\n    for p, q in zip(a.parameters(), b.parameters()):\n"
        "        p.data.mul_(0.5).add_(q.data)\n"
        "---\naverage, net = nn.Linear(2, 2), nn.Linear(2, 2).to(DEV)\n---\nupdate(average, net)",
        "average", "cpu", 3, None,
    ),
    "an item of a batch": (
        "def step(b):\n    return b['a'] + b['m']\n---\nbatch = {'a': torch.ones(3, device=DEV), 'm': torch.ones(3)}\n"
        "step(batch)",
        "batch['m']", "cpu", 2, None,
    ),
    "an attribute of an object": (
        "from types import SimpleNamespace\nspace = SimpleNamespace(a=torch.ones(3, device=DEV), b=torch.ones(3))\n"
        "---\nspace.a + space.b",
        "space.b", "cpu", 2, "space.a",
    ),
    "a loop's variable": (
        "loader = [(torch.ones(3), torch.ones(3))]\nw = torch.ones(3, device=DEV)\n---\nfor x, y in loader:\n"
        "    out = w * x",
        "x", "cpu", 2, "w",
    ),
    "a local of the function": (
        "def f(x):\n    noise = torch.ones(3)\n    return x + noise\n---\none = torch.ones(3, device=DEV)\nf(one)",
        "noise", "cpu", 1, "x",
    ),
    "what the caller passed, where a parameter is bound to what is computed of it": (
        "def f(x, m):\n    m = m.clone() * 2\n    return x + m\n---\none = torch.ones(3, device=DEV)\n"
        "mask = torch.ones(3)\nf(one, mask)",
        "mask", "cpu", 2, "x",
    ),
    "the whole model": (
        NET + "\nx = torch.ones(1, 3, device=DEV)\n---\nnet(x)",
        "net", "cpu", 2, "x",
    ),
    "the largest part that is wholly misplaced": (
        NET + ".to(DEV)\nnet[2] = nn.Sequential(nn.Linear(3, 2))\n"
        "x = torch.ones(1, 3, device=DEV)\n---\nnet(x)",
        "net[2]", "cpu", 2, None,
    ),
    "the model from inside its own forward": (
        FC + "    def forward(self, inp):\n        return self.fc(inp)\n---\nnet = Net()\n"
        "batch = torch.ones(1, 3, device=DEV)\n---\n"
        "net(batch)",
        "net", "cpu", 3, None,
    ),
    "state is named where the class is written": (
        FC + "        self.pos = torch.ones(3)\n    def forward(self, inp):\n        return self.fc(inp + self.pos)\n"
        "---\nnet = Net().to(DEV)\nbatch = torch.ones(1, 3, device=DEV)\n---\nnet(batch)",
        "self.pos", "cpu", 1, "inp",
    ),
    "a layer of a loop": (
        "class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        "        self.layers = [nn.Linear(3, 3)]\n    def forward(self, h):\n        for layer in self.layers:\n"
        "            h = layer(h)\n        return h\n---\nnet = Net().to(DEV)\n"
        "x = torch.ones(1, 3, device=DEV)\n---\nnet(x)",
        "layer", "cpu", 1, None,
    ),
    "inside a comprehension": (
        "w = torch.ones(3, device=DEV)\nparts = [torch.ones(3)]\n---\nouts = [w * p for p in parts]",
        "p", "cpu", 2, "w",
    ),
    "a comprehension's free variable in a function": (
        "def f(ws, scale):\n    return [w * scale for w in ws]\n---\nfactors = torch.ones(3)\n"
        "f([torch.ones(3, device=DEV)], factors)",
        "factors", "cpu", 2, "w",
    ),
    "a lambda": (
        "f = lambda a, b: a @ b\n---\none, two = torch.ones(3, device=DEV), torch.ones(3)\nf(one, two)",
        "two", "cpu", 2, "a",
    ),
    "an augmented assignment": (
        "total = torch.ones(3)\none = torch.ones(3, device=DEV)\n---\ntotal += one",
        "total", "cpu", 2, "one",
    ),
    "a view on the line": (
        "one = torch.ones(2, 3, device=DEV)\nm = torch.ones(3)\n---\none + m[None, :].expand(2, 3)",
        "m", "cpu", 2, "one",
    ),
    "an expression that is bound nowhere": (
        "one = torch.ones(3, device=DEV)\n---\nout = one + torch.ones(3)",
        "torch.ones(3)", "cpu", 2, "one",
    ),
    "a generator function": (
        "def gen(xs, s):\n    for x in xs:\n        yield x * s\n---\nscale = torch.ones(3)\n"
        "outs = list(gen([torch.ones(3, device=DEV)], scale))",
        "scale", "cpu", 2, "x",
    ),
    "a method with a view's name": (
        "class Split:\n    def __init__(self, t): self.t = t\n    def view(self, x): return x * self.t\n---\n"
        "s = Split(torch.ones(3))\none = torch.ones(3, device=DEV)\ns.view(one)",
        "self.t", "cpu", 1, "x",
    ),
    "a call with two functions on one line": (
        "def pre(a): return a\ndef post(a, b): return a + b\n---\none, two = torch.ones(3, device=DEV), torch.ones(3)\n"
        "post(pre(one), pre(two))",
        "pre(two)", "cpu", 2, "a",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", NAMED)
def test_named(name: str, notebook: Notebook) -> None:
    cells, expression, device, cell, met = NAMED[name]
    notebook.run(*cells.split("\n---\n"))
    finding = notebook.finding()
    assert finding.stray is not None
    stray = finding.stray
    assert stray.site.source.cell is not None
    assert (stray.expression, stray.device, stray.site.source.cell.number) == (expression, device, cell)
    if met is not None:
        assert finding.other is not None and finding.other.expression == met


def test_a_file_of_the_user(notebook: Notebook, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "mine_for_climb.py").write_text("def mix(u, v):\n    return u * v\n")
    notebook.run("from mine_for_climb import mix\none, two = torch.ones(3, device=DEV), torch.ones(3)\nmix(one, two)")
    finding = notebook.finding()
    assert finding.stray is not None
    assert finding.stray.expression == "two" and finding.stray.path == "two"
    assert finding.failed.source.file == str(tmp_path / "mine_for_climb.py")
