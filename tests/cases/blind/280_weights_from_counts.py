# id = "280"
# cause = "loss_weight"
# also_causes = []
# culprit = "self.criteria['organ'].weight"
# also_culprit = ["self.criteria['organ']", "crit.weight", "crit", "task.criteria['organ']", "task.criteria['organ'].weight", "task.criteria"]
# culprit_cell = 4
# origin_cell = 3
# also_cells = [2, 5]
# origin = "return nn.CrossEntropyLoss(weight=w, **kw)"
# culprit_device = "HOST"
# other_device = "DEV"
# fail_cell = 5
# fix_site = "an earlier cell"
# visible = "only in an object attribute (weight of a criterion in a dict)"
# expect_after_fix = "sum_loss.device == torch.device(DEV) and task.trunk.weight.grad.device == torch.device(DEV)"
# [[ref_fix]]
# op = "replace"
# cell = 4
# old = "self.criteria = criteria"
# new = "self.criteria = {k: c.to(device) for k, c in criteria.items()}"
# [rerun]
# cells = [4, 5]

# %%
import torch, torch.nn as nn
from collections import Counter

scans = {"organ": [0, 0, 0, 1, 2, 0], "finding": [0, 1, 0, 0, 1, 1]}

# %%
def inverse_frequency(labels, power=0.5):
    n = Counter(labels)
    w = torch.tensor([len(labels) / n[c] for c in sorted(n)]) ** power
    return w / w.sum() * len(n)

# %%
def make_criterion(labels, balanced, **kw):
    if not balanced:
        return nn.CrossEntropyLoss(**kw)
    w = inverse_frequency(labels)
    return nn.CrossEntropyLoss(weight=w, **kw)

# %%
class MultiTask:
    def __init__(self, heads, criteria, device):
        self.trunk = nn.Linear(5, 6).to(device)
        self.heads = {k: nn.Linear(6, n).to(device) for k, n in heads.items()}
        self.criteria = criteria
        self.mix = {k: 1 / len(heads) for k in heads}

    def losses(self, x, y):
        z = self.trunk(x).relu()
        for k, crit in self.criteria.items():
            yield self.mix[k] * crit(self.heads[k](z), y[k])

criteria = {"finding": make_criterion(scans["finding"], balanced=False, label_smoothing=0.05),
            "organ": make_criterion(scans["organ"], balanced=True)}
task = MultiTask({"finding": 2, "organ": 3}, criteria, DEV)

# %%
x = torch.randn(6, 5, device=DEV)
y = {k: torch.tensor(v, device=DEV) for k, v in scans.items()}
sum_loss = sum(task.losses(x, y))
sum_loss.backward()
