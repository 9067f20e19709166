"""From a name back to where its value was made, in real notebooks; the last step is the origin.

Most cells fail with an ordinary error (``x.no``): the way back does not depend on which.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from failing import Notebook

# cells, separated by a line of three dashes; what is followed from the failing line; the steps
CHAINS: dict[str, tuple[str, str, list[str]]] = {
    "an assignment in the cell": (
        "x = torch.zeros(3)\nx.no",
        "x",
        ["assignment 1: x = torch.zeros(3)"],
    ),
    "an assignment in an earlier cell": (
        "x = torch.zeros(3)\n---\nx.no",
        "x",
        ["assignment 1: x = torch.zeros(3)"],
    ),
    "through names": (
        "a = torch.zeros(3)\n---\nb = a\n---\nc = b\nc.no",
        "c",
        ["assignment 3: c = b", "assignment 2: b = a", "assignment 1: a = torch.zeros(3)"],
    ),
    "the latest cell that binds it": (
        "x = torch.zeros(3)\n---\nx = torch.ones(3)\n---\ny = 3\n---\nx.no",
        "x",
        ["assignment 2: x = torch.ones(3)"],
    ),
    "not a binding below": (
        "x = torch.zeros(3)\n---\ny = x.no\nx = torch.ones(3)",
        "x",
        ["assignment 1: x = torch.zeros(3)"],
    ),
    "of several in one line": (
        "x = torch.zeros(3); x.no; x = torch.ones(3)",
        "x",
        ["assignment 1: x = torch.zeros(3)"],
    ),
    "views of it": (
        "x = torch.zeros(3)\ny = x.view(-1).unsqueeze(0)[0]\ny.no",
        "y",
        ["assignment 1: y = x.view(-1).unsqueeze(0)[0]", "assignment 1: x = torch.zeros(3)"],
    ),
    "an unpacking": (
        "a, b = torch.zeros(3), torch.ones(3)\nb.no",
        "b",
        ["assignment 1: a, b = torch.zeros(3), torch.ones(3)"],
    ),
    "an unpacking of a call": (
        "def two(): return torch.zeros(3), torch.ones(3)\na, b = two()\nb.no",
        "b",
        ["assignment 1: a, b = two()", "return 1: return torch.zeros(3), torch.ones(3)"],
    ),
    "a swap": (
        "a = torch.zeros(1)\nb = torch.ones(1)\na, b = b, a\na.no",
        "a",
        ["assignment 1: a, b = b, a", "assignment 1: b = torch.ones(1)"],
    ),
    "a walrus": (
        "if (x := torch.zeros(3)) is not None:\n    x.no",
        "x",
        ["assignment 1: x := torch.zeros(3)"],
    ),
    "a with": (
        "import contextlib\n@contextlib.contextmanager\ndef made():\n    yield torch.zeros(3)\n---\n"
        "with made() as x:\n    x.no",
        "x",
        ["with 2: with made() as x: x.no", "return 1: yield torch.zeros(3)"],
    ),
    "a loop": (
        "loader = [torch.zeros(3)]\n---\nfor x in loader:\n    x.no",
        "x",
        ["loop 2: for x in loader: x.no", "assignment 1: loader = [torch.zeros(3)]"],
    ),
    "a loop over pairs": (
        "loader = [(torch.zeros(3), 1)]\n---\nfor i, (x, y) in enumerate(loader):\n    x.no",
        "x",
        ["loop 2: for i, (x, y) in enumerate(loader): x.no", "assignment 1: loader = [(torch.zeros(3), 1)]"],
    ),
    "a comprehension": (
        "xs = [torch.zeros(3)]\n[x.no for x in xs]",
        "x",
        ["loop 1: [x.no for x in xs]", "assignment 1: xs = [torch.zeros(3)]"],
    ),
    "made by a comprehension": (
        "xs = [torch.zeros(3) for _ in range(2)]\ny = xs[0]\ny.no",
        "y",
        ["assignment 1: y = xs[0]", "assignment 1: xs = [torch.zeros(3) for _ in range(2)]"],
    ),
    "what a loop assigns below": (
        "h = None\nfor i in range(2):\n    if i: h.no\n    h = torch.zeros(3)",
        "h",
        ["assignment 1: h = None"],
    ),
    "an item": (
        "d = {}\n---\nd['k'] = torch.zeros(3)\n---\nd['k'].no",
        "d['k']",
        ["item 2: d['k'] = torch.zeros(3)"],
    ),
    "an item from where the dictionary is made": (
        "d = {'k': torch.zeros(3)}\n---\nd['k'].no",
        "d['k']",
        ["assignment 1: d = {'k': torch.zeros(3)}"],
    ),
    # functions -----------------------------------------------------------------------------
    "an argument": (
        "def f(x):\n    return x.no\n---\ny = torch.zeros(3)\nf(y)",
        "x",
        ["argument 2: f(y)", "assignment 2: y = torch.zeros(3)"],
    ),
    "an argument through two functions": (
        "def f(x):\n    return x.no\n---\ndef g(z):\n    return f(x=z)\n---\ny = torch.zeros(3)\ng(y)",
        "x",
        ["argument 2: f(x=z)", "argument 3: g(y)", "assignment 3: y = torch.zeros(3)"],
    ),
    "an argument made on the spot": (
        "def f(x):\n    return x.no\n---\nf(torch.zeros(3))",
        "x",
        ["argument 2: f(torch.zeros(3))"],
    ),
    "an argument that is bound again": (
        "def f(x):\n    x = x + 1\n    return x.no\n---\ny = torch.zeros(3)\nf(y)",
        "x",
        ["assignment 1: x = x + 1", "argument 2: f(y)", "assignment 2: y = torch.zeros(3)"],
    ),
    "a starred argument": (
        "def f(a, x):\n    return x.no\n---\nys = 1, torch.zeros(3)\nf(*ys)",
        "x",
        ["argument 2: f(*ys)", "assignment 2: ys = 1, torch.zeros(3)"],
    ),
    "through *args": (
        "def f(x):\n    return x.no\ndef g(*args):\n    return f(*args)\n---\ny = torch.zeros(3)\ng(y)",
        "x",
        ["argument 2: g(y)", "assignment 2: y = torch.zeros(3)"],
    ),
    "through keywords made on the spot": (
        "def f(x):\n    return x.no\n---\nf(**{'x': torch.zeros(3)})",
        "x",
        ["argument 2: f(**{'x': torch.zeros(3)})"],
    ),
    "through a partial": (
        "import functools\ndef f(x, y):\n    return y.no\n---\ng = functools.partial(f, 1)\n"
        "z = torch.zeros(3)\ng(z)",
        "y",
        ["argument 2: g(z)", "assignment 2: z = torch.zeros(3)"],
    ),
    "through a decorator": (
        "import functools\ndef logged(f):\n    @functools.wraps(f)\n    def inner(*args, **kwargs):\n"
        "        return f(*args, **kwargs)\n    return inner\n---\n@logged\ndef step(x):\n    return x.no\n---\n"
        "y = torch.zeros(3)\nstep(y)",
        "x",
        ["argument 3: step(y)", "assignment 3: y = torch.zeros(3)"],
    ),
    "through a library": (
        "def f(x):\n    return x.no\n---\ny = torch.zeros(3)\nlist(map(f, [y]))",
        "x",
        ["argument 2: list(map(f, [y]))", "assignment 2: y = torch.zeros(3)"],
    ),
    "the receiver": (
        "class A:\n    def f(self, x):\n        return x.no\n---\na, y = A(), torch.zeros(3)\na.f(y)",
        "x",
        ["argument 2: a.f(y)", "assignment 2: a, y = A(), torch.zeros(3)"],
    ),
    "a default": (
        "def f(x=torch.zeros(3)):\n    return x.no\n---\nf()",
        "x",
        ["closure 1: torch.zeros(3)"],
    ),
    "a keyword-only default": (
        "def f(*, x=torch.zeros(3)):\n    return x.no\n---\nf()",
        "x",
        ["closure 1: torch.zeros(3)"],
    ),
    "a closure over a local": (
        "def outer():\n    k = torch.zeros(3)\n    def inner():\n        return k.no\n    return inner\n---\n"
        "f = outer()\nf()",
        "k",
        ["assignment 1: k = torch.zeros(3)"],
    ),
    "a closure over an argument": (
        "def outer(k):\n    def inner():\n        return k.no\n    return inner\n---\ny = torch.zeros(3)\n"
        "f = outer(y)\n---\nf()",
        "k",
        ["closure 2: outer(y)", "assignment 2: y = torch.zeros(3)"],
    ),
    "a lambda's argument": (
        "f = lambda x: x.no\n---\ny = torch.zeros(3)\nf(y)",
        "x",
        ["argument 2: f(y)", "assignment 2: y = torch.zeros(3)"],
    ),
    "a returned value": (
        "def make():\n    t = torch.zeros(3)\n    return t\n---\nx = make()\nx.no",
        "x",
        ["assignment 2: x = make()", "return 1: return t", "assignment 1: t = torch.zeros(3)"],
    ),
    "a global from inside a function": (
        "x = torch.zeros(3)\n---\ndef f():\n    return x.no\n---\nf()",
        "x",
        ["assignment 1: x = torch.zeros(3)"],
    ),
    "a global that a function sets": (
        "def init():\n    global x\n    x = torch.zeros(3)\n---\ninit()\n---\nx.no",
        "x",
        ["assignment 1: x = torch.zeros(3)"],
    ),
    "a function bound anew": (
        "def f(x): return x\n---\ndef f(x):\n    return x.no\n---\ny = torch.zeros(3)\nf(y)",
        "x",
        ["argument 3: f(y)", "assignment 3: y = torch.zeros(3)"],
    ),
    # objects -------------------------------------------------------------------------------
    "an attribute set in __init__": (
        "class A:\n    def __init__(self):\n        self.t = torch.zeros(3)\n    def f(self):\n"
        "        return self.t.no\n---\na = A()\na.f()",
        "self.t",
        ["attribute 1: self.t = torch.zeros(3)"],
    ),
    "an attribute set in another method": (
        "class A:\n    def __init__(self):\n        self.t = None\n    def setup(self):\n"
        "        self.t = torch.zeros(3)\n    def f(self):\n        return self.t.no\n---\na = A()\na.setup()\na.f()",
        "self.t",
        ["attribute 1: self.t = torch.zeros(3)"],
    ),
    "an attribute of a base": (
        "class A:\n    def __init__(self):\n        self.t = torch.zeros(3)\n---\nclass B(A):\n    def f(self):\n"
        "        return self.t.no\n---\nb = B()\nb.f()",
        "self.t",
        ["attribute 1: self.t = torch.zeros(3)"],
    ),
    "an attribute of the class": (
        "class A:\n    t = torch.zeros(3)\n---\na = A()\na.t.no",
        "a.t",
        ["attribute 1: t = torch.zeros(3)"],
    ),
    "an attribute set on the instance": (
        "class A:\n    def __init__(self):\n        self.t = torch.zeros(3)\n---\na = A()\n---\n"
        "a.t = torch.ones(3)\n---\na.t.no",
        "a.t",
        ["attribute 3: a.t = torch.ones(3)"],
    ),
    "an attribute set on the instance, seen from a method": (
        "class A:\n    def f(self):\n        return self.t.no\n---\na = A()\n---\na.t = torch.ones(3)\n---\na.f()",
        "self.t",
        ["attribute 3: a.t = torch.ones(3)"],
    ),
    "an argument of __init__": (
        "class A:\n    def __init__(self, w):\n        self.t = w\n    def f(self):\n        return self.t.no\n---\n"
        "v = torch.zeros(3)\na = A(v)\n---\na.f()",
        "self.t",
        ["attribute 1: self.t = w", "argument 2: A(v)", "assignment 2: v = torch.zeros(3)"],
    ),
    "a buffer": (
        "class A(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        "        self.register_buffer('t', torch.zeros(3))\n    def forward(self):\n        return self.t.no\n---\n"
        "A()()",
        "self.t",
        ["attribute 1: self.register_buffer('t', torch.zeros(3))"],
    ),
    "a list that is filled": (
        "class A:\n    def __init__(self):\n        self.xs = []\n    def add(self, x):\n        self.xs.append(x)\n"
        "    def f(self):\n        return self.xs.no\n---\na = A()\ny = torch.zeros(3)\na.add(y)\na.f()",
        "self.xs",
        ["attribute 1: self.xs.append(x)", "argument 2: a.add(y)", "assignment 2: y = torch.zeros(3)"],
    ),
    "a dataclass's field": (
        "from dataclasses import dataclass\n@dataclass\nclass A:\n    t: object\n---\na = A(torch.zeros(3))\na.t.no",
        "a.t",
        ["assignment 2: a = A(torch.zeros(3))"],
    ),
    # nothing to follow ------------------------------------------------------------------------
    "an import": (
        "from math import pi as x\n---\nx.no",
        "x",
        [],
    ),
    "a name of nobody": (
        "get_ipython().no",
        "get_ipython",
        [],
    ),
    "itself": (
        "x = torch.zeros(3)\nfor i in range(3):\n    x = x + 1\n    if i: x.no",
        "x",
        ["assignment 1: x = x + 1", "assignment 1: x = torch.zeros(3)"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CHAINS)
def test_chain(name: str, notebook: Notebook) -> None:
    cells, text, wanted = CHAINS[name]
    notebook.run(*cells.split("\n---\n"))
    assert notebook.trace(text) == wanted


def test_of_two_sides_the_one_on_the_stray_device(notebook: Notebook) -> None:
    notebook.run("a = torch.zeros(3, device=DEV)\nb = torch.zeros(())", "c = a * b\nc.no")
    assert notebook.trace("c", "cuda:0")[1:] == ["assignment 1: a = torch.zeros(3, device=DEV)"]
    assert notebook.trace("c", "cpu")[1:] == ["assignment 1: b = torch.zeros(())"]


def test_a_move_is_an_origin(notebook: Notebook) -> None:
    notebook.run("a = torch.zeros(3)", "b = a.to(DEV)\nb.no")
    assert notebook.trace("b", "cuda:0") == ["assignment 2: b = a.to(DEV)"]


def test_a_cell_that_ran_again(notebook: Notebook) -> None:
    make, other = "x = torch.zeros(3)", "x = torch.ones(3)"
    notebook.run(make, other, make, "x.no")
    assert notebook.trace("x") == ["assignment 3: x = torch.zeros(3)"]


def test_an_edited_cell_is_told_as_it_ran_last(notebook: Notebook) -> None:
    notebook.shell.run("x = torch.zeros(3)", "a")
    notebook.shell.run("x = torch.ones(4)", "a")
    notebook.run("x.no")
    assert notebook.trace("x") == ["assignment 2: x = torch.ones(4)"]


def test_a_cell_that_failed_half_way_counts(notebook: Notebook) -> None:
    notebook.shell.run("x = torch.zeros(3)")
    assert notebook.shell.run("x = torch.ones(3)\n1 / 0").error is not None
    notebook.run("x.no")
    assert notebook.trace("x") == ["assignment 2: x = torch.ones(3)"]


def test_below_a_cell_magic(notebook: Notebook) -> None:
    notebook.shell.run("%%time\nx = torch.zeros(3)")
    notebook.run("x.no")
    assert notebook.trace("x") == ["assignment 1: x = torch.zeros(3)"]


def test_into_a_module_of_the_user(notebook: Notebook, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "mine_for_origin.py").write_text(
        "import torch\nTABLE = torch.zeros(3)\nclass Net:\n    def __init__(self, w):\n        self.w = w\n"
        "    def f(self):\n        return self.w.no\ndef g():\n    return TABLE.no\n"
    )
    notebook.run("import mine_for_origin as m\nn = m.Net(torch.ones(3))", "n.f()")
    assert notebook.trace("self.w") == ["attribute mine_for_origin.py: self.w = w", "argument 1: m.Net(torch.ones(3))"]
    notebook.error = None
    notebook.run("m.g()")
    assert notebook.trace("TABLE") == ["assignment mine_for_origin.py: TABLE = torch.zeros(3)"]


def test_the_last_move_of_a_thing(notebook: Notebook) -> None:
    notebook.run("net = nn.Linear(2, 2)", "net.to(DEV)", "net.cpu()", "y = net.no")
    site = notebook.tracer().last_move("net")
    assert site is not None and site.source.cell is not None
    assert (site.source.cell.number, site.source.segment(site.node)) == (3, "net.cpu()")
    assert notebook.tracer().last_move("other") is None


def test_long_ways_end(notebook: Notebook) -> None:
    cells = ["x0 = torch.zeros(3)"] + [f"x{i + 1} = x{i}" for i in range(40)]
    notebook.run("\n".join(cells) + "\nx40.no")
    assert len(notebook.trace("x40")) == 16
