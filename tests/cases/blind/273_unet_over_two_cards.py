# id = "273"
# cause = "model_split_multi_gpu"
# also_causes = ["stray_in_collection"]
# culprit = "skip"
# also_culprit = ["skips", "skips[-1]", "skips[1]"]
# culprit_cell = 3
# origin_cell = 3
# also_cells = []
# origin = "skips.append(x)"
# culprit_device = "DEV"
# other_device = "DEV2"
# fail_cell = 5
# fix_site = "forward"
# visible = "raising frame"
# expect_after_fix = "mask.device == torch.device(DEV2) and mask.shape == (1, 1, 8, 8)"
# needs = "DEV2"
# [[ref_fix]]
# op = "replace"
# cell = 3
# old = "for up, skip in zip(self.ups, reversed(skips)):"
# new = "for up, skip in zip(self.ups, [s.to(x.device) for s in reversed(skips)]):"
# [rerun]
# cells = [3, 4, 5]

# %%
import torch
from torch import nn
import torch.nn.functional as F

# %%
def block(cin, cout):
    return nn.Sequential(nn.Conv2d(cin, cout, 3, padding=1), nn.GroupNorm(1, cout), nn.ReLU())

# %%
class UNet(nn.Module):
    def __init__(self, base=4, device_map=None):
        super().__init__()
        self.downs = nn.ModuleList([block(1, base), block(base, 2 * base)])
        self.mid = block(2 * base, 2 * base)
        self.ups = nn.ModuleList([block(4 * base, base), block(2 * base, base)])
        self.last = nn.Conv2d(base, 1, 1)
        self.map = device_map or {}
        for name, dev in self.map.items():
            getattr(self, name).to(dev)

    def enter(self, name, x):
        """activations follow the parts of the model"""
        return x.to(self.map[name]) if name in self.map else x

    def forward(self, x):
        skips = []
        x = self.enter("downs", x)
        for down in self.downs:
            x = down(x)
            skips.append(x)
            x = F.max_pool2d(x, 2)
        x = self.mid(self.enter("mid", x))
        x = self.enter("ups", x)
        for up, skip in zip(self.ups, reversed(skips)):
            x = F.interpolate(x, scale_factor=2)
            x = up(torch.cat([x, skip], dim=1))
        return self.last(self.enter("last", x))

# %%
unet = UNet(device_map={"downs": DEV, "mid": DEV2, "ups": DEV2, "last": DEV2})

# %%
with torch.no_grad():
    mask = unet(torch.rand(1, 1, 8, 8)).sigmoid()
