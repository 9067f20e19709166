# id = "195"
# cause = "hardcoded_device"
# also_causes = ["fresh_tensor_no_device"]
# culprit = "u"
# also_culprit = ["torch.rand(logits.shape, device=self.device).clamp(1e-6, 1 - 1e-6)", "torch.log(-torch.log(u))", "torch.rand(logits.shape, device=self.device)"]
# culprit_cell = 1
# origin_cell = 1
# also_cells = [2]
# origin = "self.device = torch.device(\"cuda\" if torch.cuda.is_available() else \"cpu\")"
# culprit_device = "DEV"
# other_device = "DEV2"
# fail_cell = 3
# fix_site = "class __init__"
# visible = "raising frame"
# expect_after_fix = "zq.device == torch.device(DEV2)"
# needs = "DEV2"
# [[ref_fix]]
# op = "replace"
# cell = 1
# old = "torch.rand(logits.shape, device=self.device)"
# new = "torch.rand_like(logits)"
# [rerun]
# cells = [1, 2, 3]

# %%
import torch
from torch import nn
import torch.nn.functional as F

class Quantizer(nn.Module):
    def __init__(self, dim=4, codes=6):
        super().__init__()
        self.to_logits, self.book = nn.Linear(dim, codes), nn.Embedding(codes, dim)
        self.device = torch.device("cuda" if torch.cuda.is_available() else "cpu")

    def forward(self, z, tau=1.0):
        logits = self.to_logits(z)
        u = torch.rand(logits.shape, device=self.device).clamp(1e-6, 1 - 1e-6)
        soft = F.softmax((logits - torch.log(-torch.log(u))) / tau, dim=-1)
        return soft @ self.book.weight

# %%
vq = Quantizer().to(DEV2)

# %%
zq = vq(torch.randn(3, 4, device=DEV2))
