"""First fixes for what objects, containers, caches and defaults keep where no ``.to()`` of a model reaches it."""

from __future__ import annotations

import pytest
import test_first_fix as first
from test_first_fix import IMPORTS, Notebook

Kinds = dict[str, tuple[str, str]]  # name: what the first fix adds, cells separated by "# %%"

NESTED: Kinds = {
    "pairs_in_a_tuple": (
        "        self.levels_modules = nn.ModuleList(m for part in self.levels for m in part)",
        """
class Pyramid(nn.Module):
    def __init__(self):
        super().__init__()
        self.levels = tuple((nn.Linear(3, 3), nn.Linear(3, 2)) for _ in range(2))
    def forward(self, x):
        found = []
        for body, side in self.levels:
            x = body(x)
            found.append(side(x))
        return torch.cat(found)
# %%
net = Pyramid().to(DEV)
# %%
out = net(torch.ones(2, 3, device=DEV))
""",
    ),
    "weights_and_losses": (
        "        self.terms_modules = nn.ModuleList(m for _, m in self.terms)",
        """
class Center(nn.Module):
    def __init__(self):
        super().__init__()
        self.centers = nn.Parameter(torch.randn(3))
    def forward(self, x): return (x - self.centers).pow(2).mean()
class Sum(nn.Module):
    def __init__(self, weights):
        super().__init__()
        self.terms = []
        for w in weights:
            self.terms.append((w, Center()))
    def forward(self, x):
        total = 0.0
        for w, term in self.terms:
            total = total + w * term(x)
        return total
# %%
loss = Sum([1.0, 0.5]).to(DEV)
# %%
out = loss(torch.ones(2, 3, device=DEV))
""",
    ),
    "layers_beside_functions_in_dicts": (
        "        self.stages_modules = nn.ModuleList("
        "m for part in self.stages for m in part.values() if isinstance(m, nn.Module))",
        """
class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.stages = []
        for i in range(2):
            self.stages.append({"layer": nn.Linear(3, 3), "act": torch.tanh, "skip": i > 0})
    def forward(self, x):
        for s in self.stages:
            layer, act = s["layer"], s["act"]
            y = act(layer(x))
            x = x + y if s["skip"] else y
        return x
# %%
net = Encoder().to(DEV)
# %%
out = net(torch.ones(2, 3, device=DEV))
""",
    ),
    "objects_of_a_plain_class": (
        "        self.experts_modules = nn.ModuleList("
        "m for part in self.experts for m in vars(part).values() if isinstance(m, nn.Module))",
        """
class Expert:
    def __init__(self, d):
        self.fc, self.calls = nn.Linear(d, d), 0
    def __call__(self, x):
        self.calls += 1
        return self.fc(x)
class Mix(nn.Module):
    def __init__(self):
        super().__init__()
        self.experts = [Expert(3) for _ in range(2)]
    def forward(self, x):
        return sum(e(x) for e in self.experts)
# %%
net = Mix().to(DEV)
# %%
out = net(torch.ones(2, 3, device=DEV))
""",
    ),
}

HOLDERS: Kinds = {
    "teacher_in_a_dataclass": (
        "cfg = Config(teacher=build().to(DEV), temperature=2.0)",
        """
from dataclasses import dataclass
def build(): return nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 2))
@dataclass
class Config:
    teacher: nn.Module
    temperature: float = 1.0
class Distil(nn.Module):
    def __init__(self, student, cfg):
        super().__init__()
        self.student, self.cfg = student, cfg
    @property
    def teacher(self): return self.cfg.teacher
    def forward(self, x): return (self.student(x) - self.teacher(x)) / self.cfg.temperature
# %%
cfg = Config(teacher=build(), temperature=2.0)
net = Distil(build(), cfg).to(DEV)
# %%
out = net(torch.ones(2, 3, device=DEV))
""",
    ),
    "critics_appended_to_an_object": (
        "for m in agent.critics:",
        """
class Agent:
    def __init__(self): self.critics = []
    def q(self, s): return torch.stack([c(s) for c in self.critics]).min(0).values
# %%
agent = Agent()
for _ in range(2):
    agent.critics.append(nn.Linear(3, 1))
# %%
out = agent.q(torch.ones(2, 3, device=DEV))
""",
    ),
    "registry_that_is_filled_when_asked": (
        'MODELS, KINDS = {}, {"small": lambda: nn.Linear(3, 2).to(DEV)}',
        """
MODELS, KINDS = {}, {"small": lambda: nn.Linear(3, 2)}
# %%
def get(name):
    if name not in MODELS:
        MODELS[name] = KINDS[name]().eval()
    return MODELS[name]
# %%
class Score:
    def __init__(self): self.net = get("small")
    def __call__(self, x): return self.net(x)
# %%
score = Score()
# %%
out = score(torch.ones(2, 3, device=DEV))
""",
    ),
    "masks_kept_in_a_dict_of_another_cell": (
        "",
        """
MASKS = {}
# %%
def mask(n):
    if n not in MASKS:
        MASKS[n] = torch.ones(n, n).tril()
    return MASKS[n]
# %%
def attend(q):
    m = mask(len(q))
    return (q @ q.T).masked_fill(m == 0, -1e9).softmax(-1)
# %%
q = torch.ones(3, 2, device=DEV)
out = attend(q)
""",
    ),
}

CACHES: Kinds = {
    "two_tables_of_one_cache": (
        "        if self._cos is None or self._cos.shape[0] < n or self._cos.device != x.device:",
        """
class Rotary(nn.Module):
    def __init__(self):
        super().__init__()
        self.gain = nn.Parameter(torch.ones(2))
        self._cos = self._sin = None
    def tables(self, x):
        n = x.shape[0]
        if self._cos is None or self._cos.shape[0] < n:
            t = torch.arange(n, device=x.device)[:, None] * 0.1
            self._cos, self._sin = t.cos(), t.sin()
        return self._cos[:n], self._sin[:n]
    def forward(self, x):
        x = x * self.gain
        cos, sin = self.tables(x)
        return x * cos + x.flip(-1) * sin
# %%
data = torch.arange(8.0).view(4, 2)
rotary = Rotary().to(DEV)
first = rotary(data.to(DEV))
# %%
rotary.to("cpu")
# %%
out = rotary(data[:3])
""",
    ),
    "tables_that_another_method_fills": (
        "        if len(x) > self.kept or self.cos.device != x.device:",
        """
class Rotary(nn.Module):
    def __init__(self):
        super().__init__()
        self.kept = 0
    def build(self, n, device):
        t = torch.arange(n, device=device)[:, None] * 0.1
        self.cos, self.sin, self.kept = t.cos(), t.sin(), n
    def forward(self, x):
        if len(x) > self.kept:
            self.build(len(x), x.device)
        return x * self.cos[:len(x)] + x.flip(-1) * self.sin[:len(x)]
# %%
rotary = Rotary()
first = rotary(torch.ones(4, 2))
# %%
out = rotary(torch.ones(3, 2, device=DEV))
""",
    ),
    "statistics_set_by_fit": (
        '        self.register_buffer("mean", None, persistent=False)',
        """
rows = torch.arange(12.0).view(6, 2)
class Norm(nn.Module):
    def __init__(self):
        super().__init__()
        self.mean = self.std = None
    def fit(self, x):
        self.mean, self.std = x.mean(0), x.std(0)
        return self
    def forward(self, x): return (x - self.mean) / self.std
# %%
norm = Norm().fit(rows)
on_host = norm(rows)
# %%
norm.to(DEV)
out = norm(rows.to(DEV))
""",
    ),
}

WORKED_BEFORE: Kinds = {
    "table_that_met_the_host": (
        "y = torch.ones(3, 4, device=DEV) * freq.to(DEV)",
        """
freq = torch.linspace(1, 2, 4)
# %%
demo = torch.sin(freq * torch.arange(4.0))
# %%
y = torch.ones(3, 4, device=DEV) * freq
out = y.sum()
""",
    ),
    "object_that_met_the_host": (
        "z.mu, z.sd = z.mu.to(DEV), z.sd.to(DEV)",
        """
class ZScore:
    def __init__(self, x): self.mu, self.sd = x.mean(0), x.std(0)
    def __call__(self, x): return (x - self.mu) / self.sd
rows = torch.arange(20.0).view(5, 4) ** 1.5
# %%
z = ZScore(rows)
flat = z(rows).abs().max()
# %%
out = z(rows.to(DEV))
""",
    ),
    "weights_computed_again": (
        "",
        """
tags = torch.tensor([0, 1, 1, 2])
def rarity(tags):
    w = torch.bincount(tags).float().reciprocal()
    return w / w.mean()
def loss(logits, y):
    return F.cross_entropy(logits, y, weight=w)
w = rarity(tags).to(DEV)
# %%
logits, y = torch.ones(4, 3, device=DEV), tags.to(DEV)
before = loss(logits, y).item()
# %%
w = rarity(torch.cat([tags, torch.tensor([2])]))
# %%
out = loss(logits, y)
""",
    ),
}

OPTIMIZERS: Kinds = {
    "resumed_in_a_method_and_moved_in_another": (
        "        for param, state in self.opt.state.items():",
        """
import copy
def make(): return nn.Linear(3, 1)
net0 = make()
opt0 = torch.optim.Adam(net0.parameters())
net0(torch.ones(2, 3)).sum().backward()
opt0.step()
saved = copy.deepcopy(opt0.state_dict())
# %%
class Trainer:
    def __init__(self, net):
        self.net = net
        self.opt = torch.optim.Adam(net.parameters())
    def resume(self, saved):
        self.opt.load_state_dict(saved)
        return self
    def fit(self, x):
        self.net.to(DEV)
        self.net(x.to(DEV)).mean().backward()
        self.opt.step()
# %%
net = make()
trainer = Trainer(net).resume(saved)
# %%
trainer.fit(torch.ones(2, 3))
out = net.weight
""",
    ),
    "slow_copies_around_an_optimizer": (
        "ahead.slow = [[t.to(DEV) for t in ts] for ts in ahead.slow]",
        """
class Ahead:
    def __init__(self, inner):
        self.inner = inner
        self.slow = [[p.detach().clone() for p in g["params"]] for g in inner.param_groups]
    @torch.no_grad()
    def step(self):
        self.inner.step()
        for group, kept in zip(self.inner.param_groups, self.slow):
            for fast, slow in zip(group["params"], kept):
                slow += 0.5 * (fast - slow)
                fast.copy_(slow)
# %%
net = nn.Linear(3, 1)
ahead = Ahead(torch.optim.SGD(net.parameters(), lr=0.1))
# %%
net = net.to(DEV)
# %%
net(torch.ones(2, 3, device=DEV)).sum().backward()
ahead.step()
out = net.weight
""",
    ),
}

DEFAULTS: Kinds = {
    "a_device_by_default": (
        "    bank = mel(4, device=x.device)",
        """
def mel(n, *, device=torch.device("cpu")):
    f = torch.linspace(0, 1, n, device=device)
    return f * torch.ones(n, device=device)
# %%
def power(x):
    bank = mel(4)
    return x * bank
# %%
out = power(torch.ones(2, 4, device=DEV))
""",
    ),
    "numbers_beside_tensors": (
        "    return np.mean([float(t) for t in values])",
        """
import numpy as np
log = {"loss": [], "rate": []}
for i in range(2):
    log["loss"].append(torch.ones((), device=DEV) * i)
    log["rate"].append(0.1)
def mean(key):
    values = log[key]
    return np.mean(values)
# %%
out = torch.tensor([mean(key) for key in log])
""",
    ),
}

ALL = [
    Notebook(name, tuple((IMPORTS + cells).split("# %%\n")), adds)
    for kinds in (NESTED, HOLDERS, CACHES, WORKED_BEFORE, OPTIMIZERS, DEFAULTS)
    for name, (adds, cells) in kinds.items()
]


@pytest.mark.parametrize("case", ALL, ids=lambda case: case.name)
def test_first_fix_of_what_is_kept(case: Notebook) -> None:
    first.test_first_fix(case)
