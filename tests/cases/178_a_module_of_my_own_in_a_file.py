# id = "178"
# cause = "fresh_tensor_no_device"
# also_causes = []
# culprit = "noise"
# also_culprit = ["torch.randn(x.shape) * self.sigma", "torch.randn(x.shape)"]
# culprit_cell = 1
# origin_cell = 1
# also_cells = []
# origin = "noise = torch.randn(x.shape) * self.sigma"
# culprit_device = "HOST"
# other_device = "DEV"
# fail_cell = 4
# fix_site = "forward"
# visible = "raising frame"
# expect_after_fix = "back.device == torch.device(DEV)"
# # the module lies in a file of the user's that a cell has written: an edit of that cell (run again, module reloaded) is as good as a patch of the file
# [[ref_fix]]
# op = "replace"
# cell = 1
# old = "torch.randn(x.shape)"
# new = "torch.randn_like(x)"
# [[ref_fix]]
# op = "replace"
# cell = 2
# old = "from mylayers import GaussianNoise"
# new = "import importlib, mylayers; importlib.reload(mylayers); from mylayers import GaussianNoise"
# [rerun]
# cells = [1, 2, 3, 4]

# %%
%%writefile mylayers.py
import torch
from torch import nn


class GaussianNoise(nn.Module):
    """adds noise while training"""

    def __init__(self, sigma=0.1):
        super().__init__()
        self.sigma = sigma

    def forward(self, x):
        if not self.training:
            return x
        noise = torch.randn(x.shape) * self.sigma
        return x + noise

# %%
import sys; sys.path.insert(0, ".")
import torch
from torch import nn
from mylayers import GaussianNoise

# %%
ae = nn.Sequential(GaussianNoise(), nn.Linear(5, 2), nn.Linear(2, 5)).to(DEV)

# %%
back = ae(torch.rand(3, 5, device=DEV))
