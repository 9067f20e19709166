# id = "123"
# cause = "hardcoded_device"
# also_causes = ["input_not_moved"]
# culprit = "batch"
# also_culprit = ["to_gpu(batch)"]
# culprit_cell = 3
# origin_cell = 2
# also_cells = []
# origin = "return t.cuda() if torch.cuda.is_available() else t"
# culprit_device = "DEV"
# other_device = "DEV2"
# fail_cell = 3
# fix_site = "a function in an earlier cell"
# visible = "first user frame"
# expect_after_fix = "d.device == torch.device(DEV2)"
# needs = "DEV2"
# [[ref_fix]]
# op = "replace"
# cell = 2
# old = "return t.cuda() if torch.cuda.is_available() else t"
# new = "return t.to(device)"
# [rerun]
# cells = [2, 3]

# %%
import torch
from torch import nn
from itertools import combinations
device = torch.device(DEV2)

# %%
def to_gpu(t):
    # "everything to the card"
    return t.cuda() if torch.cuda.is_available() else t

class TripletNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb = nn.Sequential(nn.Linear(5, 4), nn.Tanh())
    def forward(self, x):
        return nn.functional.normalize(self.emb(x), dim=1)

tnet = TripletNet().to(device)

# %%
batch = torch.rand(6, 5)
batch = to_gpu(batch)
e = tnet(batch)
pairs = list(combinations(range(len(e)), 2))
d = torch.stack([(e[i] - e[j]).norm() for i, j in pairs])
