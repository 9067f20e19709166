# id = "119"
# cause = "derived_tensor_in_init"
# also_causes = ["plain_tensor_attribute"]
# culprit = "self.gamma"
# also_culprit = ["mixer.ls.gamma", "self.ls", "mixer.ls", "self.ls.gamma"]
# culprit_cell = 2
# origin_cell = 2
# also_cells = [3]
# origin = "self.gamma = self.log_gamma.exp()"
# culprit_device = "HOST"
# other_device = "DEV"
# fail_cell = 3
# fix_site = "class __init__"
# visible = "only in an object attribute"
# expect_after_fix = "z.device == torch.device(DEV)"
# [[ref_fix]]
# op = "replace"
# cell = 2
# old = "self.gamma = self.log_gamma.exp()          # computed once, \"to save time\""
# new = ""
# [[ref_fix]]
# op = "replace"
# cell = 2
# old = "return x * self.gamma"
# new = "return x * self.log_gamma.exp()"
# [rerun]
# cells = [2, 3]

# %%
import torch
from torch import nn

# %%
class LayerScale(nn.Module):
    def __init__(self, dim, init=0.1):
        super().__init__()
        self.log_gamma = nn.Parameter(torch.full((dim,), init).log())
        self.gamma = self.log_gamma.exp()          # computed once, "to save time"

    def forward(self, x):
        return x * self.gamma

class Mixer(nn.Module):
    def __init__(self, dim=6):
        super().__init__()
        self.fc = nn.Linear(dim, dim)
        self.ls = LayerScale(dim)
    def forward(self, x):
        return x + self.ls(self.fc(x))

# %%
mixer = Mixer().to(DEV); mixer.eval()
with torch.no_grad(): z = mixer(torch.randn(2, 6).to(DEV))
