# id = "184"
# cause = "plain_tensor_attribute"
# also_causes = []
# culprit = "self.mask_token"
# also_culprit = ["mae.mask_token", "mae"]
# culprit_cell = 1
# origin_cell = 1
# also_cells = [2, 3]
# origin = "self.mask_token = torch.full((dim,), 0.02)"
# culprit_device = "HOST"
# other_device = "DEV"
# fail_cell = 3
# fix_site = "class __init__"
# visible = "only in an object attribute"
# expect_after_fix = "recon.device == torch.device(DEV)"
# # a buffer alone does not help: cell 2 moves the children only
# [[ref_fix]]
# op = "replace"
# cell = 1
# old = "self.mask_token = torch.full((dim,), 0.02)"
# new = "self.register_buffer('mask_token', torch.full((dim,), 0.02))"
# [[ref_fix]]
# op = "replace"
# cell = 2
# old = "for module in mae.children():\n    module.to(DEV)"
# new = "mae.to(DEV)"
# [rerun]
# cells = [1, 2, 3]

# %%
import torch
from torch import nn

class MAE(nn.Module):
    def __init__(self, dim=6):
        super().__init__()
        self.embed, self.decode = nn.Linear(3, dim), nn.Linear(dim, 3)
        self.mask_token = torch.full((dim,), 0.02)

    def forward(self, patches, ratio=0.5):
        tokens = self.embed(patches)
        n = int(tokens.size(1) * ratio)
        hidden = torch.zeros(tokens.shape[:2], dtype=torch.bool, device=tokens.device)
        hidden[:, :n] = True
        tokens = tokens.detach().clone()
        tokens[hidden] = self.mask_token
        return self.decode(tokens), hidden

# %%
mae = MAE()
for module in mae.children():
    module.to(DEV)

# %%
recon, hidden = mae(torch.rand(2, 4, 3, device=DEV))
