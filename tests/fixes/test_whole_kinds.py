"""One fix mends all that is astray in the same way: the next error of the kind does not come."""

from __future__ import annotations

import ast

import pytest
import shells
import torch
from mended import IMPORTS, Notebook, applied, check_first_fix, corrected, diagnosed, run, values

import ipydevice
from ipydevice.diagnosis import Diagnosis

NOTEBOOKS = [
    Notebook(
        "layers_moved_one_by_one",
        (
            IMPORTS + "class Coder(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
            "        self.enc, self.dec = nn.Linear(3, 4), nn.Linear(4, 3)\n"
            "        self.scale = torch.full((4,), 0.5)\n"
            "    def forward(self, x):\n        return self.dec(self.enc(x) * self.scale)",
            "coder = Coder()\nfor part in coder.children():\n    part.to(DEV)",
            "out = coder(torch.ones(2, 3, device=DEV))",
        ),
        "coder.to(DEV)",
    ),
    Notebook(
        "distribution_of_host_tensors",
        (
            IMPORTS + "from torch.distributions import Independent, Normal\nloc = torch.zeros(3)",
            "prior = Independent(Normal(loc, torch.ones(3)), 1)",
            "z = torch.ones(2, 3, device=DEV)\nout = prior.log_prob(z)",
        ),
        "prior = Independent(Normal(loc.to(DEV), torch.ones(3, device=DEV)), 1)",
    ),
    Notebook(
        "state_that_a_loop_binds_anew",
        (
            IMPORTS + "net = nn.Linear(2, 2).to(DEV)\ndef start(): return torch.zeros(2)\n"
            "def after(step): return torch.full((2,), float(step))",
            "seen = []\nobs = start()\nfor step in range(3):\n    seen.append(net(obs))\n    obs = after(step)\n"
            "out = torch.stack(seen)",
        ),
        "    seen.append(net(obs.to(DEV)))",
    ),
    Notebook(
        "shards_on_two_cards",
        (
            IMPORTS + "shards = [torch.arange(8.0).view(4, 2).to(d) for d in (DEV, DEV2)]",
            "picked = []\nids = torch.tensor([0, 3], device=DEV)\nfor shard in shards:\n"
            "    picked.append(shard[ids].to(DEV))\nout = torch.cat(picked)",
        ),
        "    picked.append(shard[ids.to(shard.device)].to(DEV))",
    ),
    Notebook(
        "blocks_on_two_cards",
        (
            IMPORTS + "class Pipe(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
            "        self.blocks = nn.ModuleList([nn.Linear(3, 3).to(DEV), nn.Linear(3, 3).to(DEV2)])\n"
            "    def forward(self, x):\n        for block in self.blocks:\n            x = block(x).relu()\n"
            "        return x",
            "pipe = Pipe()\nout = pipe(torch.ones(2, 3, device=DEV))",
        ),
        "            x = block(x.to(next(block.parameters()).device)).relu()",
    ),
    Notebook(
        "parameters_in_a_list",
        (
            IMPORTS + "class Mix(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
            "        self.ws = [nn.Parameter(torch.ones(3) * k) for k in range(2)]\n"
            "        self.lin = nn.Linear(3, 3)\n"
            "    def forward(self, x):\n        return sum(self.lin(x) * w for w in self.ws)",
            "mix = Mix().to(DEV)",
            "out = mix(torch.ones(2, 3, device=DEV))",
        ),
        "        self.ws = nn.ParameterList([nn.Parameter(torch.ones(3) * k) for k in range(2)])",
    ),
    Notebook(
        "tensors_of_one_shape_in_a_list",
        (
            IMPORTS + "class Grid(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
            "        self.lin = nn.Linear(3, 3)\n        self.anchors = [torch.ones(3) * k for k in (1, 2)]\n"
            "    def forward(self, x):\n        h = self.lin(x)\n        return sum(h * a for a in self.anchors)",
            "grid = Grid().to(DEV)",
            "out = grid(torch.ones(2, 3, device=DEV))",
        ),
        '        self.register_buffer("anchors", torch.stack([torch.ones(3) * k for k in (1, 2)]), persistent=False)',
    ),
    Notebook(
        "losses_in_a_list_met_in_a_comprehension",
        (
            IMPORTS + "class Many(nn.Module):\n    def __init__(this, w):\n        super().__init__()\n"
            "        this.parts = [nn.CrossEntropyLoss(weight=w * k) for k in (1, 2)]\n"
            "        this.mix = nn.Parameter(torch.ones(2))\n"
            "    def forward(this, x, y):\n        each = [part(x, y) for part, _ in zip(this.parts, (0, 1))]\n"
            "        return (torch.stack(each) * this.mix).sum()",
            "many = Many(torch.ones(3)).to(DEV)",
            "out = many(torch.ones(2, 3, device=DEV), torch.tensor([0, 2], device=DEV))",
        ),
        "        this.parts = nn.ModuleList([nn.CrossEntropyLoss(weight=w * k) for k in (1, 2)])",
    ),
    Notebook(
        "all_on_one_line",
        (
            IMPORTS
            + "class Scale(nn.Module):\n    def __init__(s, n): super().__init__(); s.w = torch.arange(float(n))\n"
            "    def forward(s, x): return x * s.w",
            "scale = Scale(3).to(DEV)",
            "out = scale(torch.ones(2, 3, device=DEV))",
        ),
        '    def __init__(s, n): super().__init__(); s.register_buffer("w", torch.arange(float(n)), persistent=False)',
    ),
    Notebook(
        "averages_in_a_dict",
        (
            IMPORTS + "net = nn.Linear(3, 2)\nema = {k: v.clone() for k, v in net.state_dict().items()}\nnet.to(DEV)",
            "with torch.no_grad():\n    for k, v in net.state_dict().items():\n"
            "        ema[k].mul_(0.9).add_(v, alpha=0.1)\nout = ema['weight']",
        ),
        "",
    ),
    Notebook(
        "a_leaf_that_learns",
        (
            IMPORTS + "import numpy as np\nX = torch.arange(6.0, device=DEV).view(2, 3)",
            "w = torch.from_numpy(np.ones(3, dtype='float32')).requires_grad_()\nopt = torch.optim.SGD([w], lr=0.1)",
            "for _ in range(2):\n    opt.zero_grad(); (X @ w).pow(2).mean().backward(); opt.step()\nout = w.grad",
        ),
        "w = torch.from_numpy(np.ones(3, dtype='float32')).to(DEV).requires_grad_()",
    ),
    Notebook(
        "a_model_that_worked_on_the_host",
        (
            IMPORTS + "net = nn.Linear(3, 2)\nxs = torch.ones(4, 3)",
            "before = net(xs).sum()",
            "out = net(torch.ones(2, 3, device=DEV))",
        ),
        "net.to(DEV)",
    ),
    Notebook(
        "frozen_samples",
        (
            IMPORTS + "from dataclasses import dataclass\n@dataclass(frozen=True)\nclass Sample:\n"
            "    img: torch.Tensor\n    mask: torch.Tensor\nnet = nn.Linear(3, 2).to(DEV)\n"
            "samples = [Sample(torch.ones(2, 3), torch.ones(2, 1)) for _ in range(2)]",
            "def score(s):\n    return net(s.img) * s.mask\nout = torch.cat([score(s) for s in samples])",
        ),
        "samples = [Sample(torch.ones(2, 3, device=DEV), torch.ones(2, 1, device=DEV)) for _ in range(2)]",
    ),
    Notebook(
        "tables_of_an_object_bound_together",
        (
            IMPORTS + "class Tables:\n    def __init__(self, n):\n        a = torch.arange(n) / n\n"
            "        self.cos, self.sin = a.cos(), a.sin()\n    def __call__(self, x):\n        n = x.shape[-1]\n"
            "        c, s = self.cos[:n], self.sin[:n]\n        return x * c + x * s\n"
            "class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
            "        self.l, self.turn = nn.Linear(3, 3), Tables(8)\n"
            "    def forward(self, x): return self.turn(self.l(x))",
            "net = Net().to(DEV)",
            "out = net(torch.ones(2, 3, device=DEV))",
        ),
        "        c, s = self.cos.to(x.device)[:n], self.sin.to(x.device)[:n]",
    ),
    Notebook(
        "gradient_made_by_a_function_on_the_host",
        (
            IMPORTS + "def directions(ps):\n    flat = torch.cat([p.detach().flatten().cpu() for p in ps])\n"
            "    total = torch.zeros_like(flat)\n    for _ in range(2):\n        u = torch.ones(flat.shape)\n"
            "        total += u * 0.5\n    return total.split([p.numel() for p in ps])",
            "net = nn.Linear(3, 2, bias=False).to(DEV)",
            "for p, g in zip(net.parameters(), directions(list(net.parameters()))):\n    p.grad = g.view_as(p)\n"
            "out = net.weight.grad",
        ),
        "    g = g.to(DEV)",
    ),
    Notebook(
        "own_optimizer_stepped_before_the_move",
        (
            IMPORTS + "class Slow(torch.optim.Optimizer):\n    def __init__(self, ps): super().__init__(ps, {})\n"
            "    @torch.no_grad()\n    def step(self):\n        for group in self.param_groups:\n"
            "            for p in group['params']:\n                kept = self.state[p]\n"
            "                if not kept: kept['m'] = torch.zeros_like(p)\n                m = kept['m']\n"
            "                m = 0.9 * m + p.grad\n                kept['m'] = m\n                p.sub_(0.1 * m)",
            "net = nn.Linear(3, 1)\nopt = Slow(net.parameters())\ndef one(x):\n    opt.zero_grad()\n"
            "    net(x).sum().backward()\n    opt.step()",
            "one(torch.ones(2, 3))",
            "net.to(DEV)",
            "one(torch.ones(2, 3, device=DEV))\nout = net.weight.detach()",
        ),
        "for param, state in opt.state.items():",
    ),
    Notebook(
        "state_that_a_method_makes_anew",
        (
            IMPORTS + "class Agent(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
            "        self.cell, self.h, self.c = nn.LSTMCell(2, 3), None, None\n    def reset(self, n):\n"
            "        self.h = torch.zeros(n, 3)\n        self.c = torch.zeros(n, 3)\n    def act(self, x):\n"
            "        self.h, self.c = self.cell(x, (self.h, self.c))\n        return self.h",
            "agent = Agent().to(DEV)",
            "agent.reset(2)\nout = agent.act(torch.ones(2, 2, device=DEV))",
        ),
        "        self.c = torch.zeros(n, 3, device=DEV)",
    ),
    Notebook(
        "parts_put_into_a_moved_model",
        (
            IMPORTS + "class Low(nn.Module):\n    def __init__(self, base):\n        super().__init__()\n"
            "        self.base = base\n        self.A = nn.Parameter(torch.ones(2, base.in_features))\n"
            "        self.B = nn.Parameter(torch.ones(base.out_features, 2))\n"
            "    def forward(self, x): return self.base(x) + x @ self.A.T @ self.B.T\n"
            "def inject(module):\n    for name, child in list(module.named_children()):\n"
            "        if isinstance(child, nn.Linear): setattr(module, name, Low(child))",
            "net = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2)).to(DEV)",
            "inject(net)",
            "x = torch.ones(2, 3, device=DEV)\nout = net(x).detach()",
        ),
        "net.to(DEV)",
    ),
    Notebook(
        "cache_of_a_tuple",
        (
            IMPORTS + "class Rope:\n    table = None\n    def tables(self, n, device):\n"
            "        if self.table is None or self.table[0].size(0) < n:\n"
            "            a = torch.arange(n, device=device) / n\n            self.table = (a.cos(), a.sin())\n"
            "        return self.table[0][:n], self.table[1][:n]\n    def __call__(self, x):\n"
            "        c, s = self.tables(x.size(0), x.device)\n        return x * c + s\nrope = Rope()",
            "rope(torch.ones(4))",
            "out = rope(torch.ones(4, device=DEV))",
        ),
        "        if self.table is None or self.table[0].size(0) < n or self.table[0].device != device:",
    ),
    Notebook(
        "list_that_an_object_keeps_for_numpy",
        (
            IMPORTS + "import numpy as np\nclass Grab:\n    def __init__(self): self.rows = []\n"
            "    def keep(self, x): self.rows.append(x.detach())\n"
            "    def matrix(self): return np.concatenate(self.rows)",
            "grab = Grab()\nfor _ in range(2): grab.keep(torch.ones(2, 3, device=DEV))",
            "out = torch.from_numpy(grab.matrix())",
        ),
        "    def matrix(self): return np.concatenate([t.detach().cpu() for t in self.rows])",
    ),
    Notebook(
        "attribute_set_again_after_the_move",
        (
            IMPORTS + "def fit(x): return torch.tensor(x.cpu().numpy()[:2])\nclass Quant(nn.Module):\n"
            "    def __init__(self):\n        super().__init__()\n"
            "        self.l, self.centres = nn.Linear(3, 3), None\n"
            "    def start(self, z): self.centres = fit(z)\n    def forward(self, z): return (z - self.centres).abs()",
            "quant = Quant().to(DEV)\nx = torch.ones(2, 3, device=DEV)\nquant.start(x)",
            "out = quant(x)",
        ),
        "    def forward(self, z): return (z - self.centres.to(z.device)).abs()",
    ),
]


@pytest.mark.parametrize("case", NOTEBOOKS, ids=lambda case: case.name)
def test_one_fix_for_the_kind(case: Notebook) -> None:
    check_first_fix(case)


def asked(*cells: str) -> Diagnosis:
    with ipydevice.virtual_gpus(2), shells.shell() as shell:
        shell.run("%load_ext ipydevice")
        assert run(shell, list(cells), "cuda:0"), "the notebook does not fail"
        found = ipydevice.explain()
    assert found is not None
    return found


PLAIN = (
    "class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.l = nn.Linear(3, 3)\n"
    "        self.scale = torch.ones(3)\n    def forward(self, x): return self.l(x) * self.scale"
)


def test_a_class_defined_anew_asks_for_its_object_again() -> None:
    mended = PLAIN.replace("self.scale = torch.ones(3)", "self.register_buffer('scale', torch.ones(3))")
    cells = [IMPORTS + PLAIN, "net = Net().to(DEV)", mended, "out = net(torch.ones(2, 3, device=DEV))"]
    found, problem, _ = diagnosed(cells)
    fix = found.fixes[0]
    assert not problem
    assert not fix.edits
    assert [run.cell for run in fix.rerun] == [3, 5]
    assert "In [4]" in fix.title
    assert "another class" in fix.note


def test_a_class_that_is_defined_anew_with_the_mistake_is_edited() -> None:
    found = asked(IMPORTS + PLAIN, "net = Net().to(DEV)", PLAIN + "  # again", "net(torch.ones(2, 3, device=DEV))")
    assert any("register_buffer" in edit.after for edit in found.fixes[0].edits)


STEPPED = (
    IMPORTS + "log = []\nnet = nn.Linear(3, 2)\nopt = torch.optim.Adam(net.parameters(), lr=0.1)",
    "for _ in range(2):\n    opt.zero_grad(); net(torch.ones(2, 3)).sum().backward(); opt.step()",
    "net.to(DEV)\nlog.append(3)\nopt.zero_grad(); net(torch.ones(2, 3, device=DEV)).sum().backward(); opt.step()\n"
    "out = net.weight",
)


def test_a_repair_takes_back_what_the_failed_step_has_counted() -> None:
    with ipydevice.virtual_gpus(2), shells.shell() as shell:
        shell.run("%load_ext ipydevice")
        assert run(shell, list(STEPPED), "cuda:0")
        found = ipydevice.explain()
        assert found is not None
        repair = next(fix for fix in found.fixes if fix.kind == "repair")
        assert "log.append() (log.pop() takes it back)" in repair.note
        kept = [id(parameter) for parameter in shell.names["net"].parameters()]
        assert not applied(shell, list(STEPPED), repair)
        assert kept == [id(parameter) for parameter in shell.names["net"].parameters()]
        steps = {float(state["step"]) for state in shell.names["opt"].state.values()}
        weight = shell.names["net"].weight.detach().cpu()
    assert steps == {3.0}
    torch.testing.assert_close(weight, values(list(STEPPED), "cpu", "out"), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize(
    ("cells", "before", "after"),
    [
        pytest.param(
            (IMPORTS + "a = torch.ones(2, device='cuda:0')\nnet = nn.Linear(2, 2)", "net.to('cuda:3')"),
            "'cuda:3'",
            "'cuda'",
            id="a literal",
        ),
        pytest.param(
            (
                IMPORTS + "class Args:\n    card = 'cuda:1'\n    device = 'cuda:5'\nargs = Args()",
                "x = torch.ones(2).to(args.device)",
            ),
            "    device = 'cuda:5'",
            "    device = 'cuda'",
            id="a configuration",
        ),
        pytest.param((IMPORTS + "n = 3", "x = torch.ones(2).cuda(7)"), "cuda(7)", "cuda(0)", id="a number"),
        pytest.param(
            (IMPORTS + "gpus = 4", "xs = [torch.ones(2).to(f'cuda:{i}') for i in range(gpus)]"),
            "f'cuda:{i}'",
            'f"cuda:{i % torch.cuda.device_count()}"',
            id="a loop",
        ),
    ],
)
def test_a_card_that_is_not_there(cells: tuple[str, ...], before: str, after: str) -> None:
    found, problem, _ = diagnosed(list(cells))
    assert not problem
    assert len([fix for fix in found.fixes if fix.kind == "edit"]) <= 2
    (edit,) = found.fixes[0].edits
    assert edit.after == edit.before.replace(before, after)


def test_what_the_host_wants_is_not_moved_by_other_fixes() -> None:
    cells = (
        IMPORTS + "from torch.nn.utils.rnn import pack_padded_sequence\nrnn = nn.LSTM(3, 4, batch_first=True).to(DEV)\n"
        "seq = torch.ones(2, 5, 3).to(DEV)\nlengths = torch.tensor([5, 3]).to(DEV)",
        "mask = torch.arange(5, device=DEV)[None] < lengths[:, None]\n"
        "out = rnn(pack_padded_sequence(seq, lengths, batch_first=True))[0].data",
    )
    for fix in asked(*cells).fixes:
        for edit in fix.edits:
            assert "seq.to" not in edit.after
            assert "seq.cpu" not in edit.after


def test_every_edit_offered_for_one_failure_runs_from_the_top() -> None:
    cells = list(NOTEBOOKS[1].cells)
    for fix in asked(*cells).fixes:
        if fix.kind == "edit":
            with ipydevice.virtual_gpus(2):
                values(corrected(cells, fix), "cuda:0", "out")


def test_a_guard_stops_before_the_mistake() -> None:
    cells = [IMPORTS + PLAIN, "net = Net().to(DEV)\nx = torch.ones(2, 3, device=DEV)", "net(x)"]
    guards = [fix for fix in asked(*cells).fixes if fix.kind == "guard"]
    assert len(guards) == 1
    (guard,) = guards
    assert guard.setup is not None
    assert "net.scale.device" in guard.setup
    assert "buffers" in guard.note
    with ipydevice.virtual_gpus(2), shells.shell() as shell:
        assert not run(shell, cells[:2], "cuda:0")
        problem = run(shell, [guard.setup], "cuda:0")
    assert "AssertionError" in problem
    assert "net.scale" in problem


def test_a_guard_is_code_whatever_the_path_holds() -> None:
    found = asked(
        IMPORTS
        + "net = nn.Linear(3, 2).to(DEV)\nbatch = {'x': torch.ones(2, 3, device=DEV), \"y's\": torch.ones(2, 2)}",
        "loss = net(batch['x']) - batch[\"y's\"]",
    )
    guards = [fix.setup for fix in found.fixes if fix.kind == "guard"]
    assert guards
    for code in guards:
        assert code is not None
        ast.parse(code)


def test_no_device_is_taken_from_an_argument_that_may_be_none() -> None:
    cells = [
        IMPORTS + "class Model(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        "        self.tok, self.pos = nn.Embedding(9, 4), nn.Embedding(6, 4)\n"
        "    def forward(self, ids, labels=None):\n        places = torch.arange(ids.size(1))\n"
        "        return self.tok(ids) + self.pos(places)\n",
        "model = Model().to(DEV)\nids = torch.zeros(2, 5, dtype=torch.long, device=DEV)",
        "out = model(ids, labels=ids[:, 0])",
    ]
    found, problem, _ = diagnosed(cells)
    assert not problem, problem
    said = "\n".join(edit.after for edit in found.fixes[0].edits)
    assert "device=ids.device" in said
    assert "labels.device" not in said
