# id = "162"
# cause = "library_returns_cpu"
# also_causes = ["index_device", "fresh_tensor_no_device"]
# culprit = "src"
# also_culprit = ["dst", "self.matcher(pred, tgt)", "torch.as_tensor(ix)", "ix"]
# culprit_cell = 2
# origin_cell = 2
# also_cells = [1]
# origin = "return tuple(torch.as_tensor(ix) for ix in linear_assignment(C))"
# culprit_device = "HOST"
# other_device = "DEV"
# fail_cell = 4
# fix_site = "class of the notebook"
# visible = "raising frame"
# expect_after_fix = "loss.device == torch.device(DEV) and queries.grad is not None"
# [[ref_fix]]
# op = "replace"
# cell = 2
# old = "torch.as_tensor(ix) for ix"
# new = "torch.as_tensor(ix, device=pred.device) for ix"
# [rerun]
# cells = [2, 3, 4]

# %%
import itertools
import numpy as np
import torch
from torch import nn

def linear_assignment(cost):
    """stands in for scipy's: arrays in, arrays out"""
    n = cost.shape[0]
    best = min(itertools.permutations(range(n)), key=lambda p: sum(cost[i, j] for i, j in enumerate(p)))
    return np.arange(n), np.array(best)

# %%
class HungarianMatcher(nn.Module):
    @torch.no_grad()
    def forward(self, pred, tgt):
        C = torch.cdist(pred, tgt, p=1).cpu().numpy()
        return tuple(torch.as_tensor(ix) for ix in linear_assignment(C))

class SetCriterion(nn.Module):
    def __init__(self, matcher):
        super().__init__()
        self.matcher = matcher
    def forward(self, pred, tgt):
        src, dst = self.matcher(pred, tgt)
        return nn.functional.l1_loss(pred.index_select(0, src), tgt.index_select(0, dst))

# %%
queries = nn.Parameter(torch.rand(4, 2).to(DEV))
criterion = SetCriterion(HungarianMatcher()).to(DEV)

# %%
loss = criterion(queries, torch.rand(4, 2, device=DEV))
loss.backward()
