"""All strays that one expression or one list meets are moved, whichever of them the message names."""

from __future__ import annotations

import pytest
import test_first_fix as first
from test_first_fix import IMPORTS, Notebook

Kinds = dict[str, tuple[str, str]]  # name: what the first fix adds, cells separated by "# %%"

EXPRESSIONS: Kinds = {
    "one_of_them_beside_a_number": (
        "    target = r.to(DEV) + 0.9 * net(t.to(DEV)).max(1).values * (1 - d.to(DEV))",
        """
net = nn.Linear(3, 2).to(DEV)
data = [(torch.ones(4, 3), torch.zeros(4, dtype=torch.long), torch.ones(4), torch.ones(4, 3), torch.zeros(4))]
# %%
def loss_of(batch):
    s, a, r, t, d = batch
    q = net(s.to(DEV)).gather(1, a.unsqueeze(1)).squeeze(1)
    target = r + 0.9 * net(t.to(DEV)).max(1).values * (1 - d)
    return F.mse_loss(q, target)
# %%
out = loss_of(data[0])
""",
    ),
    "items_of_a_dict_one_compared_with_a_number": (
        '    out = (b["r"].to(DEV) * q * (b["d"].to(DEV) < 1)).sum()',
        """
net = nn.Linear(3, 2).to(DEV)
batches = [dict(s=torch.ones(4, 3), a=torch.zeros(4, dtype=torch.long), r=torch.ones(4), d=torch.zeros(4))]
# %%
for b in batches:
    q = net(b["s"].to(DEV)).gather(1, b["a"][:, None]).squeeze(1)
    out = (b["r"] * q * (b["d"] < 1)).sum()
""",
    ),
    "added_to_what_is_there": (
        "    logits += bias.to(logits.device)",
        """
net = nn.Linear(3, 2).to(DEV)
halves, ones = [torch.full((2,), 0.5)], [torch.ones(2)]
print(halves[0].numpy(), ones[0].numpy())
def run(k):
    scale, bias = halves[k], ones[k]
    logits = net(torch.ones(4, 3, device=DEV))
    logits = logits * scale
    logits += bias
    return logits
# %%
out = run(0)
""",
    ),
}

LISTS: Kinds = {
    "the_first_of_what_was_collected": (
        "        return torch.cat([t.to(DEV) for t in rows])",
        """
class Memory:
    def __init__(self):
        self.kept = []
        self.add(torch.zeros(1, 3), 0.0)
    def add(self, x, value): self.kept.append({"x": x, "value": value})
    def rows(self, k):
        rows = [e["x"] for e in sorted(self.kept, key=lambda e: e["value"])[:k]]
        return torch.cat(rows)
memory = Memory()
for n in (2, 1):
    memory.add(torch.ones(n, 3, device=DEV), float(n))
# %%
out = memory.rows(3)
""",
    ),
}

ALL = [
    Notebook(name, tuple((IMPORTS + cells).split("# %%\n")), adds)
    for kinds in (EXPRESSIONS, LISTS)
    for name, (adds, cells) in kinds.items()
]


@pytest.mark.parametrize("case", ALL, ids=lambda case: case.name)
def test_first_fix_moves_all_of_them(case: Notebook) -> None:
    first.test_first_fix(case)
