# id = "185"
# cause = "fresh_tensor_no_device"
# also_causes = ["plain_tensor_attribute", "input_not_moved", "model_not_moved"]
# culprit = "base"
# also_culprit = ["base.base_dist", "base.base_dist.loc", "base.base_dist.scale"]
# culprit_cell = 2
# origin_cell = 2
# also_cells = [3]
# origin = "base = Independent(Normal(torch.zeros(3), torch.ones(3)), 1)"
# culprit_device = "HOST"
# other_device = "DEV"
# fail_cell = 3
# fix_site = "earlier cell"
# visible = "only in an object attribute"
# expect_after_fix = "nll.device == torch.device(DEV)"
# [[ref_fix]]
# op = "replace"
# cell = 2
# old = "Normal(torch.zeros(3), torch.ones(3))"
# new = "Normal(torch.zeros(3, device=DEV), torch.ones(3, device=DEV))"
# [rerun]
# cells = [2, 3]

# %%
import torch
from torch import nn
from torch.distributions import Normal, Independent

class Affine(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.s, self.t = nn.Parameter(torch.zeros(d)), nn.Parameter(torch.zeros(d))
    def forward(self, x): return (x - self.t) * (-self.s).exp(), -self.s.sum()

# %%
base = Independent(Normal(torch.zeros(3), torch.ones(3)), 1)
flow = nn.ModuleList(Affine(3) for _ in range(2)).to(DEV)

def log_prob(x):
    log_det = 0
    for f in flow:
        x, ld = f(x)
        log_det = log_det + ld
    return base.log_prob(x) + log_det

# %%
nll = -log_prob(torch.randn(5, 3, device=DEV)).mean()
nll.backward()
