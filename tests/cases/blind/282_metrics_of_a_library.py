# id = "282"
# cause = "metric_state"
# also_causes = []
# culprit = "self.metrics"
# also_culprit = ["self.metrics.members['r2']", "ev.metrics", "ev.metrics.members['r2']", "suite", "suite.members['r2']"]
# culprit_cell = 4
# origin_cell = 3
# also_cells = [5, 6]
# origin = "suite = Suite(r2=PerTargetR2(2))"
# culprit_device = "HOST"
# other_device = "DEV"
# fail_cell = 6
# fix_site = "an earlier cell"
# visible = "only in an object attribute (state of a library object)"
# expect_after_fix = "r2.numel() == 2 and bool(torch.isfinite(r2).all())"
# [[ref_fix]]
# op = "replace"
# cell = 3
# old = "suite = Suite(r2=PerTargetR2(2))"
# new = "suite = Suite(r2=PerTargetR2(2)).to(DEV)"
# [rerun]
# cells = [3, 5, 6]

# %%
import os, sys, tempfile
pkgs = tempfile.mkdtemp(prefix="site-")
os.makedirs(os.path.join(pkgs, "gauge"))
open(os.path.join(pkgs, "gauge", "__init__.py"), "w").write("from .core import Suite, PerTargetR2\n")
open(os.path.join(pkgs, "gauge", "core.py"), "w").write('''
import torch

class Gauge(torch.nn.Module):
    def add_state(self, name, value):
        self.register_buffer(name, value)

class PerTargetR2(Gauge):
    def __init__(self, targets):
        super().__init__()
        for s in ("n", "sy", "syy", "res"):
            self.add_state(s, torch.zeros(targets))

    def update(self, yhat, y):
        self.sy += y.sum(0)
        self.syy += y.square().sum(0)
        self.res += (y - yhat).square().sum(0)
        self.n += len(y)

    def compute(self):
        return 1 - self.res / (self.syy - self.sy ** 2 / self.n)

class Suite:
    def __init__(self, **members):
        self.members = members

    def to(self, device):
        for m in self.members.values():
            m.to(device)
        return self

    def update(self, *args):
        for m in self.members.values():
            m.update(*args)

    def compute(self):
        return {k: m.compute() for k, m in self.members.items()}
''')
sys.path.insert(0, pkgs)

# %%
import torch
from torch import nn
from gauge import Suite, PerTargetR2

# %%
suite = Suite(r2=PerTargetR2(2))

# %%
class Evaluator:
    def __init__(self, net, metrics):
        self.net, self.metrics = net, metrics
    @torch.no_grad()
    def run(self, loader):
        dev = next(self.net.parameters()).device
        for x, y in loader:
            self.metrics.update(self.net(x.to(dev)), y.to(dev))
        return self.metrics.compute()

# %%
regressor = nn.Linear(3, 2).to(DEV)
ev = Evaluator(regressor, suite)

# %%
r2 = ev.run([(torch.randn(5, 3), torch.randn(5, 2)) for _ in range(2)])["r2"]
