# id = "111"
# cause = "model_not_moved"
# also_causes = []
# culprit = "vgg"
# also_culprit = ["vgg.slices[0]", "s", "vgg.slices", "self.slices", "s[0]"]
# culprit_cell = 2
# origin_cell = 2
# also_cells = [1]
# origin = "vgg = FeatureNet().eval()"
# culprit_device = "HOST"
# other_device = "DEV"
# fail_cell = 4
# fix_site = "earlier cell"
# visible = "only in an object attribute"
# expect_after_fix = "sr.device == torch.device(DEV)"
# [[ref_fix]]
# op = "run"
# code = "vgg.to(DEV)"

# %%
import torch
from torch import nn

class FeatureNet(nn.Module):
    """a small frozen VGG"""
    def __init__(self, depth=3):
        super().__init__()
        chs = [3] + [4] * depth
        self.slices = nn.ModuleList(
            nn.Sequential(nn.Conv2d(a, b, 3, padding=1), nn.ReLU()) for a, b in zip(chs, chs[1:])
        )
        self.requires_grad_(False)

    def forward(self, x):
        feats = []
        for s in self.slices:
            x = s(x)
            feats.append(x)
        return feats

# %%
vgg = FeatureNet().eval()

def perceptual_loss(fake, real):
    return sum((a - b).abs().mean() for a, b in zip(vgg(fake), vgg(real)))

# %%
G = nn.Conv2d(3, 3, 3, padding=1).to(DEV)
opt_G = torch.optim.Adam(G.parameters(), betas=(0.5, 0.999))

# %%
def step(lr_img, hr_img):
    sr = G(lr_img)
    loss = nn.functional.l1_loss(sr, hr_img) + 0.1 * perceptual_loss(sr, hr_img)
    opt_G.zero_grad()
    loss.backward()
    opt_G.step()
    return loss.item(), sr.detach()

a, b = torch.rand(2, 3, 6, 6), torch.rand(2, 3, 6, 6)
l, sr = step(a.to(DEV), b.to(DEV))
