# id = "200"
# cause = "fresh_tensor_no_device"
# also_causes = ["input_not_moved", "closure_constant"]
# culprit = "EDGES"
# also_culprit = ["torch.tensor([-1.0, 0.0, 1.0])"]
# culprit_cell = 2
# origin_cell = 1
# also_cells = []
# origin = "EDGES = torch.tensor([-1.0, 0.0, 1.0])"
# culprit_device = "HOST"
# other_device = "DEV"
# fail_cell = 4
# fix_site = "earlier cell"
# visible = "raising frame"
# expect_after_fix = "per_bin.device == torch.device(DEV)"
# [[ref_fix]]
# op = "replace"
# cell = 1
# old = "torch.tensor([-1.0, 0.0, 1.0])"
# new = "torch.tensor([-1.0, 0.0, 1.0], device=DEV)"
# [rerun]
# cells = [1, 4]

# %%
import torch
from torch import nn

EDGES = torch.tensor([-1.0, 0.0, 1.0])
LOW = torch.full((4,), -2.0)

# %%
def soft_clip(z):
    return torch.clamp(z, min=LOW)

def bin_ids(z):
    return torch.bucketize(z, EDGES)

net = nn.Linear(2, 4).to(DEV)

# %%
z = net(torch.ones(3, 2, device=DEV))
print(z.shape)

# %%
ids = bin_ids(z.detach())
per_bin = torch.zeros(4, device=DEV).index_add_(0, ids.flatten(), z.flatten())
