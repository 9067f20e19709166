# id = "268"
# cause = "hardcoded_device"
# also_causes = []
# culprit = "keep"
# also_culprit = ["self.local(q.size(-2))", "attend.local(3)"]
# culprit_cell = 2
# origin_cell = 2
# also_cells = []
# origin = 'return dist.abs().le(self.reach).to("cuda:0")'
# culprit_device = "DEV"
# other_device = "DEV2"
# fail_cell = 4
# fix_site = "class of the notebook"
# visible = "first user frame"
# expect_after_fix = "y.device == torch.device(DEV2) and y.shape == (1, 5, 6)"
# needs = "DEV2"
# [[ref_fix]]
# op = "replace"
# cell = 2
# old = 'le(self.reach).to("cuda:0")'
# new = "le(self.reach).to(self.qkv.weight.device)"
# [rerun]
# cells = [2, 3, 4]

# %%
import torch
from torch import nn

# %%
class LocalAttention(nn.Module):
    def __init__(self, d, reach=1):
        super().__init__()
        self.reach = reach
        self.qkv = nn.Linear(d, 3 * d, bias=False)

    def local(self, n):
        pos = torch.arange(n)
        dist = pos[:, None] - pos[None]
        return dist.abs().le(self.reach).to("cuda:0")

    def forward(self, x):
        q, k, v = self.qkv(x).chunk(3, -1)
        keep = self.local(q.size(-2))
        score = q @ k.transpose(-1, -2) * q.size(-1) ** -0.5
        score = torch.where(keep, score, torch.full_like(score, -1e9))
        return score.softmax(-1) @ v

# %%
# card 0 is full with the other job, so this one goes to the second
where = DEV2
attend = nn.Sequential(LocalAttention(6), nn.LayerNorm(6)).to(where)

# %%
y = attend(torch.randn(1, 5, 6, device=where))
