"""Nothing is asked to move that has no ``.to()``: tuples, dicts, optimizers, named tuples; what is in them is moved."""

from __future__ import annotations

import pytest
import test_first_fix as first
from test_first_fix import IMPORTS, Notebook

Kinds = dict[str, tuple[str, str]]  # name: what the first fix adds, cells separated by "# %%"

TUPLES: Kinds = {
    "state_of_two_gathered_by_a_method": (
        "        return tuple(torch.zeros(1, n, 3, device=DEV) for _ in range(2))",
        """
class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(4, 3)
    def blank(self, n):
        return tuple(torch.zeros(1, n, 3) for _ in range(2))
    def forward(self, x, state): return self.lstm(x, state)
# %%
tagger = Tagger().to(DEV)
# %%
def run(x):
    state = tagger.blank(x.size(1))
    out, state = tagger(x, state)
    return out
out = run(torch.ones(5, 2, 4, device=DEV))
""",
    ),
    "state_of_two_from_another_file": (
        "    hc = tuple(t.to(x.device) for t in hc)",
        """
import types
lib = types.ModuleType("states")
exec("import torch\\ndef blank(n): return (torch.zeros(1, n, 3), torch.zeros(1, n, 3))", lib.__dict__)
# %%
lstm = nn.LSTM(4, 3).to(DEV)
def run(x):
    hc = lib.blank(x.size(1))
    out, hc = lstm(x, hc)
    return out
out = run(torch.ones(5, 2, 4, device=DEV))
""",
    ),
    "tables_kept_by_a_decorator": (
        "",
        """
def once(f):
    kept = {}
    def asked(x):
        if x.size(-1) not in kept: kept[x.size(-1)] = f(x)
        return kept[x.size(-1)]
    return asked
@once
def waves(x):
    at = torch.arange(x.size(-1), device=x.device).float()
    return at.cos(), at.sin()
# %%
def turned(x):
    c, s = waves(x)
    return x * c + x.flip(-1) * s
first = turned(torch.ones(2, 4))
# %%
out = turned(torch.ones(2, 4, device=DEV))
""",
    ),
}

DICTS: Kinds = {
    "a_batch_made_by_a_function": (
        "",
        """
net = nn.Linear(3, 2).to(DEV)
def collate(rows):
    return {"rows": torch.stack(rows), "n": len(rows)}
def step(rows):
    batch = collate(rows)
    return net(batch["rows"])
# %%
out = step([torch.ones(3), torch.zeros(3)])
""",
    ),
    "handed_through_a_helper_that_returns_what_it_got": (
        "",
        """
net = nn.Linear(3, 2).to(DEV)
def checked(feed):
    assert "x" in feed
    return feed
def step():
    feed = checked({"x": torch.ones(2, 3), "scale": 2.0})
    return net(feed["x"]) * feed["scale"]
# %%
out = step()
""",
    ),
    "named_tuple": (
        "",
        """
from collections import namedtuple
Pair = namedtuple("Pair", "image label")
net = nn.Linear(3, 2).to(DEV)
def load():
    return Pair(torch.ones(2, 3), 1)
# %%
def step():
    pair = load()
    return net(pair.image) * pair.label
out = step()
""",
    ),
    "sorted_by_length": (
        "",
        """
net = nn.Linear(3, 2).to(DEV)
class Store:
    def __init__(self): self.items = [torch.ones(2, 3), torch.zeros(1, 3)]
    def ordered(self): return sorted(self.items, key=len)[:2]
store = Store()
# %%
def step():
    parts = store.ordered()
    return net(torch.cat(parts))
out = step()
""",
    ),
}

OPTIMIZERS: Kinds = {
    "state_made_with_the_optimizer_and_a_move_in_another_method": (
        "        for param, state in self.opt.state.items():",
        """
class Loop:
    def __init__(self, net, kind, where):
        self.net, self.where = net, where
        self.opt = kind(net.parameters(), lr=0.1, initial_accumulator_value=0.1)
    def start(self):
        self.net.to(self.where)
    def run(self, x):
        self.start()
        self.opt.zero_grad()
        self.net(x.to(self.where)).sum().backward()
        self.opt.step()
# %%
torch.manual_seed(0)
net = nn.Linear(3, 2)
loop = Loop(net, torch.optim.Adagrad, DEV)
# %%
loop.run(torch.ones(4, 3))
out = net.weight
""",
    ),
    "moved_in_the_middle_by_somebody_else": (
        "            for param, state in job.optim.state.items():",
        """
from types import SimpleNamespace
class Saver:
    def __init__(self, where): self.where = where
    def __call__(self, job):
        if job.step == 1:
            job.net.to(self.where)
# %%
net = nn.Linear(3, 1)
optim = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
job = SimpleNamespace(net=net, optim=optim, step=0, hooks=[Saver(DEV)])
def train(job, steps):
    for _ in range(steps):
        for hook in job.hooks: hook(job)
        job.optim.zero_grad()
        job.net(torch.ones(2, 3, device=job.net.weight.device)).sum().backward()
        job.optim.step()
        job.step += 1
# %%
train(job, 3)
out = net.weight
""",
    ),
}

ELSEWHERE: Kinds = {
    "moved_by_a_helper": (
        "for param, state in opt.state.items():",
        """
def to_card(m):
    m.to(DEV)
    return m
net = nn.Linear(3, 1)
opt = torch.optim.Adam(net.parameters())
def step(x):
    opt.zero_grad(); net(x).sum().backward(); opt.step()
step(torch.ones(2, 3))
# %%
to_card(net)
# %%
step(torch.ones(2, 3, device=DEV))
out = net.weight
""",
    ),
    "no_place_behind_the_move": (
        "        for param, state in self.opt.state.items():",
        """
class Learner:
    def __init__(self, net, cbs):
        self.net, self.opt, self.cbs = net, torch.optim.RMSprop(net.parameters(), lr=0.1), cbs
    def fit(self, n):
        for i in range(n):
            for cb in self.cbs: cb(self, i)
            self.one(torch.ones(2, 3, device=self.net.weight.device))
    def one(self, x):
        self.net(x).sum().backward()
        self.opt.step(); self.opt.zero_grad()
def swap(learn, i):
    if i == 1: learn.net = learn.net.to(DEV)
# %%
learn = Learner(nn.Linear(3, 1), [swap])
# %%
learn.fit(3)
out = learn.net.weight
""",
    ),
    "one_of_several_in_a_dict": (
        "        for param, state in self.optims['actor'].state.items():",
        """
class Agent:
    def __init__(self):
        self.actor = nn.Linear(3, 1)
        self.optims = {"actor": torch.optim.Adam(self.actor.parameters(), lr=0.1)}
    def learn(self, x):
        self.optims["actor"].zero_grad()
        self.actor(x).sum().backward()
        self.optims["actor"].step()
    def to(self, device):
        self.actor.to(device)
        return self
# %%
agent = Agent()
agent.learn(torch.ones(2, 3))
# %%
agent.to(DEV)
agent.learn(torch.ones(2, 3, device=DEV))
out = agent.actor.weight
""",
    ),
}

ALL = [
    Notebook(name, tuple((IMPORTS + cells).split("# %%\n")), adds)
    for kinds in (TUPLES, DICTS, OPTIMIZERS, ELSEWHERE)
    for name, (adds, cells) in kinds.items()
]


@pytest.mark.parametrize("case", ALL, ids=lambda case: case.name)
def test_first_fix_of_what_cannot_be_moved_itself(case: Notebook) -> None:
    first.test_first_fix(case)
