"""The first fix for real failing notebooks: applied, the cell runs, also from the top, with the host's numbers."""

from __future__ import annotations

import pytest
import shells
from mended import IMPORTS, Notebook, check_first_fix, corrected, run, values

import ipydevice

NET = "net = nn.Linear(4, 2).to(DEV)\n"

NOTEBOOKS = [
    Notebook(
        "loop_beside_a_move",
        (
            IMPORTS + NET + "data = [(torch.randn(3, 4), torch.tensor([0, 1, 1]))]",
            "for x, y in data:\n    x = x.to(DEV, non_blocking=True)  # the inputs\n"
            "    out = F.cross_entropy(net(x), y)",
        ),
        "    y = y.to(DEV, non_blocking=True)",
    ),
    Notebook(
        "loop_without_moves_moves_both",
        (
            IMPORTS + NET + "data = [(torch.randn(3, 4), torch.tensor([0, 1, 1]))]",
            "for i, (x, y) in enumerate(data):\n\tlogits = net(x)\n\tout = F.cross_entropy(logits, y)",
        ),
        "\tx, y = x.to(DEV), y.to(DEV)",
    ),
    Notebook(
        "loop_in_one_line",
        (IMPORTS + NET + "xs = [torch.randn(3, 4)]", "for x in xs: out = net(x)"),
        "for x in xs: x = x.to(DEV); out = net(x)",
    ),
    Notebook(
        "lists_on_the_host_stay_there",
        (
            IMPORTS + NET + "data = [(torch.randn(3, 4), torch.tensor([0, 1, 1]))]",
            "seen, made = [], []\n"
            "for x, y in data:\n    made.append(net(x).cpu())\n    seen.append(y)\n"
            "out = (torch.cat(made).argmax(1) == torch.cat(seen)).float()",
        ),
        "    x = x.to(DEV)",
    ),
    Notebook(
        "comprehension",
        (IMPORTS + NET + "xs = [torch.randn(3, 4)]", "out = torch.cat([net(x) for x in xs])"),
        "out = torch.cat([net(x.to(DEV)) for x in xs])",
    ),
    Notebook(
        "data_for_a_plot_is_moved_at_its_use",
        (IMPORTS + NET + "X = torch.randn(3, 4)", "import numpy as np\nmean = np.mean(X.numpy())", "out = net(X)"),
        "out = net(X.to(DEV))",
    ),
    Notebook(
        "whole_training_data_before_the_loop",
        (
            IMPORTS + NET + "X, Y = torch.randn(3, 4), torch.tensor([0, 1, 1])",
            "import numpy as np\nn = np.unique(Y.numpy()), X.numpy().mean()",
            "for epoch in range(2):\n    out = F.cross_entropy(net(X), Y)",
        ),
        "X, Y = X.to(DEV), Y.to(DEV)",
    ),
    Notebook(
        "factory_in_forward",
        (
            IMPORTS + "class Noise(nn.Module):\n    def forward(self, x):\n"
            "        return x + 0.1 * torch.randn(x.size(0),\n                                   x.size(1),\n"
            "                                   )",
            "m = Noise()",
            "out = m(torch.ones(2, 3, device=DEV))",
        ),
        "                                   device=x.device,",
    ),
    Notebook(
        "two_factories_in_one_expression",
        (IMPORTS + "def f(x):\n    return x * (torch.arange(3) + torch.ones(3))", "out = f(torch.ones(3, device=DEV))"),
        "    return x * (torch.arange(3, device=x.device) + torch.ones(3, device=x.device))",
    ),
    Notebook(
        "alias_of_torch",
        ("import torch as th\ndef f(x):\n    m = th.eye(3)\n    return x @ m", "out = f(th.ones(3, 3, device=DEV))"),
        "    m = th.eye(3, device=x.device)",
    ),
    Notebook(
        "generator_keeps_its_device",
        (
            IMPORTS
            + "g = torch.Generator().manual_seed(3)\ndef f(x):\n    e = torch.randn(3, generator=g)\n    return x + e",
            "out = f(torch.ones(3, device=DEV))",
        ),
        "    return x + e.to(x.device)",
    ),
    Notebook(
        "hidden_states_in_a_pair",
        (
            IMPORTS + "class R(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
            "        self.lstm = nn.LSTM(3, 4)\n    def forward(self, x):\n        h0 = torch.zeros(1, x.size(1), 4)\n"
            "        c0 = torch.zeros(1, x.size(1), 4)\n        return self.lstm(x, (h0, c0))[0]",
            "r = R().to(DEV)",
            "out = r(torch.ones(2, 1, 3, device=DEV))",
        ),
        "        c0 = torch.zeros(1, x.size(1), 4, device=x.device)",
    ),
    Notebook(
        "plain_attribute",
        (
            IMPORTS + "class Norm(nn.Module):\n    def __init__(self, mean):\n        super().__init__()\n"
            "        self.mean = torch.tensor(mean)  # per channel\n    def forward(self, x):\n"
            "        return x - self.mean",
            "norm = Norm([1., 2.]).to(DEV)",
            "out = norm(torch.ones(3, 2, device=DEV))",
        ),
        '        self.register_buffer("mean", torch.tensor(mean), persistent=False)  # per channel',
    ),
    Notebook(
        "two_plain_attributes_in_one_line",
        (
            IMPORTS + "class Norm(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
            "        self.mean, self.std = torch.zeros(2), torch.ones(2)\n"
            "    def forward(self, x):\n        return (x - self.mean) / self.std",
            "norm = Norm().to(DEV)",
            "out = norm(torch.ones(3, 2, device=DEV))",
        ),
        '        self.register_buffer("std", torch.ones(2), persistent=False)',
    ),
    Notebook(
        "attributes_of_a_plain_object",
        (
            IMPORTS
            + "class Scale:\n    def __init__(self, X):\n        self.mean = X.mean(0)\n        self.std = X.std(0)\n"
            "    def __call__(self, x):\n        return (x - self.mean) / self.std",
            "scale = Scale(torch.randn(9, 2))",
            "out = scale(torch.ones(3, 2, device=DEV))",
        ),
        "scale.mean, scale.std = scale.mean.to(DEV), scale.std.to(DEV)",
    ),
    Notebook(
        "list_of_layers",
        (
            IMPORTS + "class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
            "        self.layers = [nn.Linear(4, 4) for _ in range(2)]\n"
            "    def forward(self, x):\n        for f in self.layers: x = f(x)\n        return x",
            "net = Net().to(DEV)",
            "out = net(torch.ones(2, 4, device=DEV))",
        ),
        "        self.layers = nn.ModuleList([nn.Linear(4, 4) for _ in range(2)])",
    ),
    Notebook(
        "dict_of_layers_read_with_get",
        (
            IMPORTS + "class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
            "        self.heads = {'a': nn.Linear(4, 4)}\n"
            "    def forward(self, x):\n        return self.heads.get('a')(x)",
            "net = Net().to(DEV)",
            "out = net(torch.ones(2, 4, device=DEV))",
        ),
        "        self.heads_modules = nn.ModuleList(self.heads.values())",
    ),
    Notebook(
        "model_left_behind",
        (
            IMPORTS + "model = nn.Sequential(\n    nn.Linear(4, 2),\n)  # small",
            "out = model(torch.ones(2, 4, device=DEV))",
        ),
        ").to(DEV)  # small",
    ),
    Notebook(
        "loss_weight",
        (
            IMPORTS + NET + "crit = nn.CrossEntropyLoss(weight=torch.tensor([1., 2.]))",
            "x, y = torch.ones(2, 4, device=DEV), torch.tensor([0, 1], device=DEV)",
            "out = crit(net(x), y)",
        ),
        "crit = nn.CrossEntropyLoss(weight=torch.tensor([1., 2.])).to(DEV)",
    ),
    Notebook(
        "layer_in_forward",
        (
            IMPORTS
            + "class Net(nn.Module):\n    def __init__(self, n):\n        super().__init__()\n        self.n = n\n"
            "    def forward(self, x):\n        return nn.LayerNorm(self.n)(x)",
            "net = Net(4).to(DEV)",
            "out = net(torch.rand(2, 4, device=DEV))",
        ),
        "        self.norm = nn.LayerNorm(self.n)",
    ),
    Notebook(
        "tensor_for_numpy",
        (
            IMPORTS + NET,
            "import numpy as np\nscores = net(torch.ones(2, 4, device=DEV))",
            "out = np.array(scores.detach())",
        ),
        "out = np.array(scores.detach().cpu())",
    ),
    Notebook(
        "two_tensors_for_numpy",
        (
            IMPORTS + NET + "with torch.no_grad(): a = net(torch.ones(2, 4, device=DEV)); b = a + 1",
            "import numpy as np\nout = np.concatenate([a.numpy(), b.numpy()])",
        ),
        "out = np.concatenate([a.cpu().numpy(), b.cpu().numpy()])",
    ),
    Notebook(
        "lengths",
        (
            IMPORTS + "from torch.nn.utils.rnn import pack_padded_sequence\nx = torch.ones(3, 2, 4, device=DEV)\n"
            "n = torch.tensor([3, 2], device=DEV)",
            "out = pack_padded_sequence(x, n).data",
        ),
        "out = pack_padded_sequence(x, n.cpu()).data",
    ),
    Notebook(
        "index_into_host_data",
        (
            IMPORTS + "bank = torch.arange(12.).view(4, 3)\nidx = torch.tensor([0, 2], device=DEV)",
            "rows = bank.numpy().shape",
            "out = bank[idx]",
        ),
        "out = bank[idx.to(bank.device)]",
    ),
    Notebook(
        "thrown_away_move",
        (IMPORTS + NET + "x = torch.ones(2, 4)", "x.to(DEV);\nout = net(x)"),
        "x = x.to(DEV);",
    ),
    Notebook(
        "cuda_call_becomes_generic",
        (
            IMPORTS + "def f(x):\n    w = torch.ones(3) + 1\n    w = w.to('cuda:1')\n    return x * w",
            "out = f(torch.ones(3, device=DEV))",
        ),
        "    w = w.to(x.device)",
    ),
    Notebook(
        "layer_put_in_by_its_number",
        (
            IMPORTS + "net = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 2)).to(DEV)",
            "net[1] = nn.Linear(3, 4)",
            "out = net(torch.ones(2, 3, device=DEV))",
        ),
        "net[1] = nn.Linear(3, 4).to(DEV)",
    ),
    Notebook(
        "layer_appended",
        (
            IMPORTS + "layers = nn.ModuleList([nn.Linear(3, 3)]).to(DEV)",
            "layers.append(nn.Linear(3, 2))",
            "out = torch.ones(2, 3, device=DEV)\nfor layer in layers:\n    out = layer(out)",
        ),
        "layers.append(nn.Linear(3, 2).to(DEV))",
    ),
    Notebook(
        "layer_set_by_its_name",
        (
            IMPORTS + "net = nn.Sequential(nn.Linear(4, 4))\nnet.add_module('fc', nn.Linear(4, 2))\nnet.to(DEV)",
            "setattr(net, 'fc', nn.Linear(4, 5))",
            "out = net(torch.ones(2, 4, device=DEV))",
        ),
        "setattr(net, 'fc', nn.Linear(4, 5).to(DEV))",
    ),
    Notebook(
        "mask_built_once",
        (
            IMPORTS
            + "class M(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.mask = None\n"
            "    def forward(self, x):\n        if self.mask is None:\n"
            "            self.mask = torch.ones(x.size(1), device=x.device)\n        return x * self.mask",
            "m = M()\nfirst = m(torch.ones(2, 3))",
            "out = m(torch.ones(2, 3, device=DEV))",
        ),
        "",
    ),
    Notebook(
        "hidden_state_kept_from_a_test_run",
        (
            IMPORTS + "class Enc(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
            "        self.gru = nn.GRU(3, 4)\n        self.h = None  # no history yet\n"
            "    def forward(self, x):\n        y, h = self.gru(x, self.h)\n"
            "        self.h = h.detach()\n        return y",
            "enc = Enc()\nenc(torch.ones(2, 1, 3)).shape",
            "enc.to(DEV);",
            "out = enc(torch.ones(2, 1, 3, device=DEV))",
        ),
        '        self.register_buffer("h", None, persistent=False)  # no history yet',
    ),
    Notebook(
        "optimizer_stepped_before_the_move",
        (
            IMPORTS + "net = nn.Linear(4, 2)\nopt = torch.optim.Adam(net.parameters())\n"
            "def step(x):\n"
            "    opt.zero_grad(); loss = net(x).pow(2).sum(); loss.backward(); opt.step()\n    return loss.detach()",
            "first = step(torch.ones(2, 4))",
            "net.to(DEV)\nout = step(torch.ones(2, 4, device=DEV))",
        ),
        '        if key != "step" and hasattr(value, "to"):',
    ),
    Notebook(
        "hook_with_a_host_mask",
        (
            IMPORTS + "layer = nn.Linear(3, 3).to(DEV)",
            "keep = torch.eye(3)\nhandle = layer.weight.register_hook(lambda grad: grad * keep)",
            "layer(torch.ones(2, 3, device=DEV)).sum().backward()\nout = layer.weight.grad",
        ),
        "keep = torch.eye(3, device=DEV)",
    ),
    Notebook(
        "weights_left_on_meta",
        (
            IMPORTS + "class Two(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
            "        self.a = nn.Linear(3, 3)\n        with torch.device('meta'): self.b = nn.Linear(3, 3)\n"
            "    def forward(self, x):\n        return self.b(self.a(x))\n"
            "saved = {'a': nn.Linear(3, 3).state_dict(), 'b': nn.Linear(3, 3).state_dict()}",
            "two = Two()\ntwo.a.load_state_dict(saved['a'])\ntwo.a.to(DEV)",
            "out = two(torch.ones(2, 3, device=DEV))",
        ),
        "two.b.to_empty(device=DEV).load_state_dict(saved['b'])",
    ),
    Notebook(
        "list_with_one_stray",
        (
            IMPORTS
            + NET
            + "def both(x):\n    parts = [net(x)]\n    parts.append(torch.zeros(1, 2))\n    return torch.cat(parts)",
            "out = both(torch.ones(2, 4, device=DEV))",
        ),
        "",
    ),
    Notebook(
        "dict_of_tensors",
        (
            IMPORTS + NET + "def encode(): return {'x': torch.ones(2, 4), 'w': torch.ones(2, 2)}",
            "batch = encode()\nout = net(batch['x']) * batch['w']",
        ),
        "def encode(): return {'x': torch.ones(2, 4, device=DEV), 'w': torch.ones(2, 2, device=DEV)}",
    ),
    Notebook(
        "list_made_on_the_spot",
        (
            IMPORTS + "kept = {}\n"
            "def features(name):\n    if name in kept: return kept[name]\n"
            "    made = torch.ones(2, device=DEV)\n    kept[name] = made.cpu()\n    return made",
            "first = features('a')",
            "out = torch.stack([features(name) for name in ('a', 'b')])",
        ),
        "out = torch.stack([features(name).to(DEV) for name in ('a', 'b')])",
    ),
    Notebook(
        "workers_that_touch_the_card",
        (
            IMPORTS + "from torch.utils.data import Dataset, DataLoader\nnet = nn.Linear(3, 2).to(DEV)\n"
            "class Points(Dataset):\n    def __len__(self): return 4\n"
            "    def __getitem__(self, i):\n        x = torch.ones(3).to(DEV)\n        return x, i",
            "for number, (x, i) in enumerate(DataLoader(Points(), batch_size=2, num_workers=1)):\n    out = net(x)",
        ),
        "    x = x.to(DEV)",
    ),
    Notebook(
        "buffer_that_no_checkpoint_holds",
        (
            IMPORTS + "class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
            "        self.lin = nn.Linear(3, 3)\n"
            "        self.register_buffer('scale', torch.arange(3.0), persistent=False)\n"
            "    def forward(self, x):\n        return self.lin(x) * self.scale\nsaved = Net().state_dict()",
            "with torch.device('meta'):\n    net = Net()\nreport = net.load_state_dict(saved, assign=True)",
            "net.lin.to(DEV)\nout = net(torch.ones(2, 3, device=DEV))",
        ),
        "with torch.device(DEV):",
    ),
    Notebook(
        "magics_and_other_scripts",
        (
            "%pwd\n" + IMPORTS + NET,
            "größe = torch.ones(2, 4)  # π ≈ 3\n%time ergebnis = 1\nout = net(größe); n = 'ü'",
        ),
        "größe = torch.ones(2, 4, device=DEV)  # π ≈ 3",
    ),
]


@pytest.mark.parametrize("case", NOTEBOOKS, ids=lambda case: case.name)
def test_first_fix(case: Notebook) -> None:
    check_first_fix(case)


def test_later_fixes_are_right_as_well() -> None:
    cells = list(NOTEBOOKS[1].cells)
    with ipydevice.virtual_gpus(2), shells.shell() as shell:
        shell.run("%load_ext ipydevice")
        assert run(shell, cells, "cuda:0")
        found = ipydevice.explain()
    assert found is not None
    for fix in found.fixes:
        if fix.kind == "edit":
            with ipydevice.virtual_gpus(2):
                values(corrected(cells, fix), "cuda:0", "out")
