"""What replicas share: dicts, plain lists, methods of the first card's module. The first fix is right on every card."""

from __future__ import annotations

import pytest
from mended import IMPORTS, Notebook, check_first_fix

NOTEBOOKS = [
    Notebook(
        "tables_kept_by_length",
        (
            IMPORTS + "class Rotary(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
            "        self.lin = nn.Linear(4, 4)\n        self.tables = {}\n"
            "    def table(self, n):\n        if n not in self.tables:\n"
            "            t = torch.arange(n, device=self.lin.weight.device)[:, None] / 7.0\n"
            "            self.tables[n] = (t.cos(), t.sin())\n        return self.tables[n]\n"
            "    def forward(self, x):\n        batch, n, _ = x.shape\n        cos, sin = self.table(n)\n"
            "        h = self.lin(x)\n        return h * cos + h.flip(-1) * sin",
            "net = Rotary().to(DEV)\nwith torch.no_grad():\n    net(torch.ones(1, 3, 4, device=DEV))",
            "both = nn.DataParallel(net)\nwith torch.no_grad():\n    out = both(torch.ones(4, 3, 4, device=DEV))",
        ),
        "        return h * cos.to(h.device) + h.flip(-1) * sin.to(h.device)",
    ),
    Notebook(
        "a_hook_of_the_first_module",
        (
            IMPORTS + "class Scaled(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
            "        self.lin = nn.Linear(4, 4)\n        self.gain = nn.Parameter(torch.full((4,), 0.5))\n"
            "        self.lin.register_forward_hook(self.scale)\n"
            "    def scale(self, layer, given, result):\n        return torch.mul(result, self.gain)\n"
            "    def forward(self, x):\n        return self.lin(x)",
            "net = Scaled().to(DEV)\nboth = nn.DataParallel(net)",
            "out = both(torch.ones(4, 4, device=DEV))",
        ),
        "        return torch.mul(result, self.gain.to(result.device))",
    ),
    Notebook(
        "parameters_in_a_list_beside_layers",
        (
            IMPORTS + "class Mix(nn.Module):\n    def __init__(self, k=2):\n        super().__init__()\n"
            "        self.lins = nn.ModuleList(nn.Linear(3, 3) for _ in range(k))\n"
            "        self.a = nn.Parameter(torch.ones(3))\n        self.b = nn.Parameter(torch.full((3,), 2.0))\n"
            "        self.gates = [self.a, self.b]\n"
            "    def forward(self, x):\n        every = [lin(x) * gate for lin, gate in zip(self.lins, self.gates)]\n"
            "        return sum(every)",
            "net = Mix()\nfor p in net.parameters():\n    p.data = p.data.to(DEV)",
            "both = nn.DataParallel(net)\nout = both(torch.ones(4, 3, device=DEV))",
        ),
        "        every = [lin(x) * gate.to(x.device) for lin, gate in zip(self.lins, self.gates)]",
    ),
    Notebook(
        "two_plain_tensors",
        (
            IMPORTS + "class Wave(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
            "        self.lin = nn.Linear(3, 3)\n"
            "        self.up, self.down = torch.ones(9), torch.zeros(9)\n"
            "    def forward(self, x):\n        n = x.shape[-1]\n        h = self.lin(x)\n"
            "        return h * self.up[:n] + self.down[:n]",
            "net = Wave().to(DEV)\nnet.up, net.down = net.up.to(DEV), net.down.to(DEV)",
            "both = nn.DataParallel(net)\nout = both(torch.ones(4, 3, device=DEV))",
        ),
        "        return h * self.up.to(h.device)[:n] + self.down.to(h.device)[:n]",
    ),
    Notebook(
        "a_token_that_is_widened",
        (
            IMPORTS + "class Cls(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
            "        self.lin = nn.Linear(3, 3)\n        self.token = torch.ones(1, 1, 3)\n"
            "    def _apply(self, fn):\n        super()._apply(fn)\n        self.token = fn(self.token)\n"
            "        return self\n"
            "    def forward(self, x):\n        B = x.size(0)\n        x = self.lin(x)\n"
            "        return torch.cat([self.token.expand(B, -1, -1), x], dim=1)",
            "both = nn.DataParallel(Cls().to(DEV))",
            "out = both(torch.ones(4, 2, 3, device=DEV))",
        ),
        "        return torch.cat([self.token.to(x.device).expand(B, -1, -1), x], dim=1)",
    ),
]


@pytest.mark.parametrize("case", NOTEBOOKS, ids=lambda case: case.name)
def test_is_moved_to_what_it_meets(case: Notebook) -> None:
    found = check_first_fix(case)
    assert found.cause == "dp_replica_state"
    assert "each replica" in found.fixes[0].title
    assert all("DEV2" not in edit.after and "cuda:1" not in edit.after for fix in found.fixes for edit in fix.edits)


def test_says_what_would_last() -> None:
    notes = {case.name: check_first_fix(case).fixes[0].note for case in NOTEBOOKS[1:3]}
    assert "hook" in notes["a_hook_of_the_first_module"]
    assert "nn.ParameterList" in notes["parameters_in_a_list_beside_layers"]
