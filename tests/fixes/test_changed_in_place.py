"""What is changed in place has to be moved itself: a name bound to a moved copy would run, and train nothing."""

from __future__ import annotations

import pytest
from mended import IMPORTS, Notebook, check_first_fix, diagnosed

KINDS = {
    "averaged_weights_by_data": """
import copy
net = nn.Linear(4, 2); ema_net = copy.deepcopy(net); net.to(DEV)
def update(a, b, m=0.5):
    with torch.no_grad():
        for p, q in zip(a.parameters(), b.parameters()):
            p.data.mul_(m).add_(q.data, alpha=1 - m)
# %%
with torch.no_grad():
    net.weight.add_(1.0)
update(ema_net, net)
out = ema_net.weight.detach() * 1
""",
    "a_target_network_of_an_agent": """
class Agent:
    def __init__(self, online, target):
        self.online, self.target = online, target
    def sync(self, tau):
        for tp, p in zip(self.target.parameters(), self.online.parameters()):
            tp.data.copy_(tau * p.data + (1 - tau) * tp.data)
online, target = nn.Linear(3, 2).to(DEV), nn.Linear(3, 2)
agent = Agent(online, target)
# %%
agent.sync(0.25)
out = agent.target.weight.detach() * 1
""",
    "a_count_of_another_cell": """
correct = torch.zeros(3); model = nn.Linear(4, 3).to(DEV)
data = torch.rand(2, 8, 4)
# %%
for x in data:
    correct += F.one_hot(model(x.to(DEV)).argmax(1), 3).sum(0)
out = correct * 1
""",
    "averages_of_a_callback_made_before_the_move": """
class Average:
    def __init__(self, net, keep):
        self.net, self.keep = net, keep
        self.kept = {n: p.detach().clone() for n, p in net.named_parameters()}
    @torch.no_grad()
    def after(self):
        for n, p in self.net.named_parameters():
            self.kept[n].mul_(self.keep).add_(p, alpha=1 - self.keep)
net = nn.Linear(3, 2)
average = Average(net, 0.5)
# %%
def fit(net, hooks):
    net.to(DEV)
    with torch.no_grad(): net.bias += 1
    for hook in hooks: hook.after()
fit(net, [average])
out = average.kept["bias"] * 1
""",
    "counts_through_a_view": """
class Counts:
    def __init__(self, k):
        self.k, self.table = k, torch.zeros(k, k)
    def add(self, a, b):
        at = a * self.k + b
        self.table.view(-1).index_add_(0, at, torch.ones_like(at, dtype=torch.float))
meters = [Counts(2), Counts(2)]
# %%
for meter in meters:
    meter.add(torch.tensor([0, 1], device=DEV), torch.tensor([1, 1], device=DEV))
out = meters[0].table * 1
""",
    "rows_of_a_table": """
class Memory:
    def __init__(self): self.rows = torch.zeros(4, 2)
    def put(self, at, x): self.rows[at] = self.rows[at] * 0.5 + x
memory = Memory()
# %%
memory.put(1, torch.ones(2, device=DEV))
memory.put(1, torch.ones(2, device=DEV))
out = memory.rows * 1
""",
}


@pytest.mark.parametrize("name", KINDS)
def test_first_fix_moves_the_thing_itself(name: str) -> None:
    check_first_fix(Notebook(name, tuple((IMPORTS + KINDS[name]).split("# %%\n")), ""))


@pytest.mark.parametrize("name", KINDS)
def test_no_fix_binds_a_copy(name: str) -> None:
    found, _, _ = diagnosed((IMPORTS + KINDS[name]).split("# %%\n"))
    said = "\n".join(edit.after for fix in found.fixes for edit in fix.edits)
    assert "p = p.to(" not in said
    assert "tp = tp.to(" not in said
