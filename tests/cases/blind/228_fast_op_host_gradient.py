# id = "228"
# cause = "library_returns_cpu"
# also_causes = []
# culprit = "soft_rank(scores, self.tau)"
# also_culprit = ["ranks", "scores", "grad_of_rank(ctx.ranks, g.detach().cpu().numpy())", "loss"]
# culprit_cell = 3
# origin_cell = 1
# also_cells = [1, 5]
# origin = "return grad_of_rank(ctx.ranks, g.detach().cpu().numpy()), None"
# culprit_device = "HOST"
# other_device = "DEV"
# fail_cell = 5
# fix_site = "library"
# visible = "in no frame (gradient inside the autograd engine)"
# expect_after_fix = "ranker.weight.grad is not None and ranker.weight.grad.device == torch.device(DEV) and loss.device == torch.device(DEV)"
# [[ref_fix]]
# op = "replace"
# cell = 1
# old = "return grad_of_rank(ctx.ranks, g.detach().cpu().numpy()), None"
# new = "return grad_of_rank(ctx.ranks, g.detach().cpu().numpy()).to(g.device), None"
# [[ref_fix]]
# op = "replace"
# cell = 2
# old = "from fastrank_ex228 import soft_rank"
# new = "import importlib, fastrank_ex228; importlib.reload(fastrank_ex228)\nfrom fastrank_ex228 import soft_rank"
# [rerun]
# cells = [1, 2, 3, 4, 5]

# %%
%%writefile fastrank_ex228.py
import numpy as np
import torch


def grad_of_rank(ranks, g):
    centred = g - g.mean()
    return torch.from_numpy(centred / (1.0 + np.abs(ranks - ranks.mean()))).float()


class _SoftRank(torch.autograd.Function):
    @staticmethod
    def forward(ctx, values, tau):
        v = values.detach().cpu().numpy()
        diff = (v[None, :] - v[:, None]) / tau
        ctx.ranks = 0.5 + (1.0 / (1.0 + np.exp(-diff))).sum(1)
        return values.new_tensor(ctx.ranks)

    @staticmethod
    def backward(ctx, g):
        return grad_of_rank(ctx.ranks, g.detach().cpu().numpy()), None


def soft_rank(values, tau=1.0):
    return _SoftRank.apply(values, tau)

# %%
import sys; sys.path.insert(0, '')
import torch
from torch import nn
from fastrank_ex228 import soft_rank

# %%
class SpearmanLoss(nn.Module):
    def __init__(self, tau=0.1):
        super().__init__()
        self.tau = tau

    @staticmethod
    def corr(a, b):
        a, b = a - a.mean(), b - b.mean()
        return (a * b).sum() / (a.norm() * b.norm() + 1e-8)

    def forward(self, scores, target):
        ranks = soft_rank(scores, self.tau)
        return 1 - self.corr(ranks, target)

# %%
ranker = nn.Linear(3, 1).to(DEV)
docs = torch.rand(7, 3, device=DEV)
relevance = torch.arange(7., device=DEV)
criterion = SpearmanLoss()

# %%
loss = criterion(ranker(docs).squeeze(-1), relevance)
loss.backward()
print(ranker.weight.grad.norm())
