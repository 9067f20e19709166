# id = "201"
# cause = "plain_tensor_attribute"
# also_causes = []
# culprit = "self.base"
# also_culprit = ["stn.base", "self.base + 0 * self.base", "stn"]
# culprit_cell = 1
# origin_cell = 1
# also_cells = [2, 3]
# origin = "self.base = F.affine_grid(torch.eye(2, 3)[None], [1, 1, 4, 4], align_corners=False)"
# culprit_device = "HOST"
# other_device = "DEV"
# fail_cell = 3
# fix_site = "class __init__"
# visible = "only in an object attribute"
# expect_after_fix = "warped.device == torch.device(DEV)"
# [[ref_fix]]
# op = "replace"
# cell = 1
# old = "self.base = F.affine_grid(torch.eye(2, 3)[None], [1, 1, 4, 4], align_corners=False)"
# new = "self.register_buffer('base', F.affine_grid(torch.eye(2, 3)[None], [1, 1, 4, 4], align_corners=False))"
# [rerun]
# cells = [1, 2, 3]

# %%
import torch
from torch import nn
import torch.nn.functional as F

class STN(nn.Module):
    def __init__(self):
        super().__init__()
        self.loc = nn.Linear(16, 6)
        nn.init.zeros_(self.loc.weight)
        self.loc.bias.data = torch.tensor([1, 0, 0, 0, 1, 0], dtype=torch.float)
        self.base = F.affine_grid(torch.eye(2, 3)[None], [1, 1, 4, 4], align_corners=False)

    def forward(self, x):
        theta = self.loc(x.flatten(1)).view(-1, 2, 3)
        shift = theta[:, None, None, :, 2]
        return F.grid_sample(x, self.base + 0 * self.base, align_corners=False) + shift.sum()

# %%
stn = STN(); _ = stn.to(DEV)

# %%
warped = stn(torch.rand(1, 1, 4, 4, device=DEV))
