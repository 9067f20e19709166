# id = "329"
# cause = "model_split_multi_gpu"
# also_causes = []
# culprit = "skip"
# also_culprit = ["skips", "skips[0]", "skips[-1]", "skips.pop()"]
# culprit_cell = 3
# origin_cell = 3
# also_cells = []
# origin = "skips.append(x)"
# culprit_device = "DEV"
# other_device = "DEV2"
# fail_cell = 5
# fix_site = "forward"
# visible = "raising frame"
# expect_after_fix = "mask_logits.device == torch.device(DEV2) and mask_logits.shape == (1, 1, 16, 16)"
# needs = "DEV2"
# [[ref_fix]]
# op = "replace"
# cell = 3
# old = "torch.cat([x, skip], dim=1)"
# new = "torch.cat([x, skip.to(x.device)], dim=1)"
# [rerun]
# cells = [3, 4, 5]

# %%
import torch
from torch import nn
import torch.nn.functional as F

# %%
def double_conv(i, o):
    return nn.Sequential(nn.Conv2d(i, o, 3, padding=1), nn.ReLU(inplace=True), nn.Conv2d(o, o, 3, padding=1), nn.ReLU(inplace=True))

# %%
class BigUNet(nn.Module):
    def __init__(self, widths=(4, 6, 8)):
        super().__init__()
        self.down = nn.ModuleList(double_conv(i, o) for i, o in zip((1,) + widths[:-1], widths))
        self.bottom = double_conv(widths[-1], widths[-1])
        rev = widths[::-1]
        self.up = nn.ModuleList(double_conv(i + s, s) for i, s in zip((rev[0],) + rev[:-1], rev))
        self.final = nn.Conv2d(widths[0], 1, 1)

    def spread(self, first, second):
        """a whole slide does not fit on one card"""
        self.first, self.second = first, second
        self.down.to(first)
        for part in (self.bottom, self.up, self.final):
            part.to(second)
        return self

    def forward(self, x):
        skips = []
        x = x.to(self.first)
        for block in self.down:
            x = block(x)
            skips.append(x)
            x = F.max_pool2d(x, 2)
        x = self.bottom(x.to(self.second))
        for block in self.up:
            x = F.interpolate(x, scale_factor=2)
            skip = skips.pop()
            x = block(torch.cat([x, skip], dim=1))
        return self.final(x)

# %%
unet = BigUNet().spread(DEV, DEV2).eval()

# %%
with torch.no_grad():
    mask_logits = unet(torch.rand(1, 1, 16, 16))
