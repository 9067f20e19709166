# id = "396"
# cause = "no_accelerator"
# also_causes = []
# culprit = ""
# also_culprit = []
# culprit_cell = 2
# origin_cell = 2
# also_cells = [3, 4]
# origin = "self.cards = [torch.device('cuda', k * self.stride) for k in range(n_members)]"
# culprit_device = "none"
# other_device = "none"
# fail_cell = 4
# fix_site = "class __init__"
# visible = "first user frame"
# expect_after_fix = "len(votes) == 3 and all(v.shape == (5, 2) for v in votes) and len(ens.members) == 3"
# numbers = false   # cards by number: on the host the notebook cannot run
# needs = "DEV2"
# [[ref_fix]]
# op = "replace"
# cell = 2
# old = "k * self.stride)"
# new = "k * self.stride % torch.cuda.device_count())"
# [rerun]
# cells = [2, 3, 4]

# %%
import itertools, os
import torch
from torch import nn

os.environ.setdefault("CARDS_PER_JOB", "4")      # the scheduler of the old cluster set this

# %%
class Ensemble:
    """members live on different cards; jobs are CARDS_PER_JOB cards apart"""
    def __init__(self, n_members, make):
        self.stride = int(os.environ["CARDS_PER_JOB"])
        self.cards = [torch.device('cuda', k * self.stride) for k in range(n_members)]
        self.make, self.members = make, []

    def deploy(self):
        self.members.clear()
        for card in self.cards:
            self.members.append(self.make().to(card))
        return self

    def __call__(self, x):
        return [m(x.to(c)).softmax(-1).cpu() for m, c in zip(self.members, self.cards)]

# %%
ens = Ensemble(3, lambda: nn.Sequential(nn.LayerNorm(6), nn.Linear(6, 2)))
print(len(ens.cards), "places")

# %%
with torch.no_grad():
    votes = ens.deploy()(torch.rand(5, 6))
