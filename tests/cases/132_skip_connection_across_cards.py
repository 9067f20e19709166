# id = "132"
# cause = "model_split_multi_gpu"
# also_causes = ["stray_in_collection"]
# culprit = "skip"
# also_culprit = ["self.enc1(x.to(self.first))"]
# culprit_cell = 1
# origin_cell = 1
# also_cells = []
# origin = "skip = self.enc1(x.to(self.first))"
# culprit_device = "DEV"
# other_device = "DEV2"
# fail_cell = 3
# fix_site = "forward"
# visible = "raising frame"
# expect_after_fix = "mask.device == torch.device(DEV2)"
# needs = "DEV2"
# [[ref_fix]]
# op = "replace"
# cell = 1
# old = "[mid, skip]"
# new = "[mid, skip.to(mid.device)]"
# [rerun]
# cells = [1, 2, 3]

# %%
import torch
from torch import nn

def block(i, o): return nn.Sequential(nn.Conv1d(i, o, 3, padding=1), nn.ReLU())

class UNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.enc1, self.enc2 = block(1, 4), block(4, 8)
        self.dec1 = block(8 + 4, 4)
        self.out = nn.Conv1d(4, 1, 1)

    def parallelize(self, first, second):
        self.enc1.to(first)
        for m in (self.enc2, self.dec1, self.out):
            m.to(second)
        self.first, self.second = first, second
        return self

    def forward(self, x):
        skip = self.enc1(x.to(self.first))
        mid = self.enc2(skip.to(self.second))
        up = torch.cat([mid, skip], dim=1)
        return self.out(self.dec1(up))

# %%
unet = UNet().parallelize(DEV, DEV2)

# %%
mask = unet(torch.randn(2, 1, 16))
