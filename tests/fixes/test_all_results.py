"""What a loop's or a method's work leaves on the host is mended for all that it goes through, the next operand too."""

from __future__ import annotations

import pytest
from mended import IMPORTS, Notebook, check_first_fix

_PAIR = (
    IMPORTS + "class Pair:\n    def __init__(self, x, y):\n        self.x, self.y = x, y\n"
    "    def to(self, device):\n        return Pair(self.x.to(device), self.y.to(device))\n"
    "net = nn.Linear(2, 3).to(DEV)\ndef pairs():\n"
    "    return [Pair(torch.ones(2) * k, torch.tensor(k)) for k in range(3)]\n"
    "def loss_of(batch):\n    x, y = torch.stack([p.x for p in batch]), torch.stack([p.y for p in batch])\n"
    "    return F.cross_entropy(net(x), y)"
)
_HEADS = (
    IMPORTS + "class Growing(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
    "        self.first = nn.Linear(3, 3)\n        self.blocks = nn.ModuleList()\n"
    "    def forward(self, x):\n        x = self.first(x)\n        for block in self.blocks:\n"
    "            x = block(x)\n        return x\n    def grow(self):\n        GROW\n"
)


def _growing(grow: str) -> tuple[str, ...]:
    return (
        _HEADS.replace("GROW", grow.replace("\n", "\n" + " " * 8)),
        "class Every:\n    def __call__(self, net, n):\n        if n % 2:\n            net.grow()",
        "net, after = Growing().to(DEV), [Every()]",
        "for n in range(2):\n    for call in after:\n        call(net, n)\n    out = net(torch.ones(2, 3, device=DEV))",
    )


NOTEBOOKS = [
    Notebook(
        "copies_dropped_by_a_loop_in_a_function",
        (
            _PAIR,
            "def ready(batch):\n    for pair in batch:\n        pair.to(DEV)\n    return batch",
            "out = loss_of(ready(pairs()))",
        ),
        "    batch = [pair.to(DEV) for pair in batch]",
    ),
    Notebook(
        "copies_dropped_by_a_loop_in_a_cell",
        (_PAIR, "batch = pairs()\nfor pair in batch: pair.to(DEV)\nout = loss_of(batch)"),
        "batch = [pair.to(DEV) for pair in batch]",
    ),
    Notebook(
        "block_named_then_appended",
        _growing("block = nn.Linear(3, 3)\nself.blocks.append(block)\nreturn block"),
        "        block = nn.Linear(3, 3).to(self.first.weight.device)",
    ),
    Notebook(
        "block_appended_at_once",
        _growing("self.blocks.append(nn.Linear(3, 3))"),
        "        self.blocks.append(nn.Linear(3, 3).to(self.first.weight.device))",
    ),
    Notebook(
        "block_named_then_inserted",
        _growing("head = nn.Linear(3, 3)\nself.blocks.insert(0, head)"),
        "        head = nn.Linear(3, 3).to(self.first.weight.device)",
    ),
]


@pytest.mark.parametrize("case", NOTEBOOKS, ids=lambda case: case.name)
def test_all_of_it_is_mended(case: Notebook) -> None:
    check_first_fix(case)
