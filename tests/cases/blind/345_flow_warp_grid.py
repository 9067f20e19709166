# id = "345"
# cause = "fresh_tensor_no_device"
# also_causes = []
# culprit = "grid"
# also_culprit = ["coords_grid(B, H, W)", "torch.stack((xx, yy), 0).float()", "torch.stack((xx, yy), 0).float().expand(batch, -1, -1, -1)", "torch.stack((xx, yy), 0)"]
# culprit_cell = 2
# origin_cell = 2
# also_cells = []
# origin = "yy, xx = torch.meshgrid(torch.arange(ht), torch.arange(wd), indexing='ij')"
# culprit_device = "HOST"
# other_device = "DEV"
# fail_cell = 4
# fix_site = "a function in an earlier cell"
# visible = "raising frame"
# expect_after_fix = "photometric.device == torch.device(DEV) and bool(torch.isfinite(photometric))"
# [[ref_fix]]
# op = "replace"
# cell = 2
# old = "vgrid = grid + flo"
# new = "vgrid = grid.to(flo) + flo"
# [rerun]
# cells = [2, 4]

# %%
import torch
import torch.nn as nn
import torch.nn.functional as F

# %%
def coords_grid(batch, ht, wd):
    yy, xx = torch.meshgrid(torch.arange(ht), torch.arange(wd), indexing='ij')
    return torch.stack((xx, yy), 0).float().expand(batch, -1, -1, -1)

def warp(x, flo):
    """warp an image (im2) back to im1, according to the optical flow

    x:   [B, C, H, W] (im2)
    flo: [B, 2, H, W] flow
    """
    B, C, H, W = x.size()
    grid = coords_grid(B, H, W)
    vgrid = grid + flo
    # scale to [-1, 1]
    gx = 2.0 * vgrid[:, 0] / max(W - 1, 1) - 1.0
    gy = 2.0 * vgrid[:, 1] / max(H - 1, 1) - 1.0
    return F.grid_sample(x, torch.stack((gx, gy), -1), align_corners=True)

# %%
class TinyFlow(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(2, 4, 3, padding=1)
        self.conv2 = nn.Conv2d(4, 2, 3, padding=1)
        self.residual = nn.Conv2d(3, 2, 3, padding=1)

    def forward(self, im1, im2):
        coarse = self.conv2(torch.relu(self.conv1(torch.cat([im1, im2], 1))))
        warped = warp(im2, coarse)
        return coarse + self.residual(torch.cat([warped, coarse], 1)), warped

# %%
flownet = TinyFlow().to(DEV)
frame_a, frame_b = torch.rand(2, 1, 10, 12), torch.rand(2, 1, 10, 12)
im1, im2 = [f.to(DEV) for f in (frame_a, frame_b)]
with torch.no_grad():
    flow, warped = flownet(im1, im2)
    photometric = (im1 - warped).abs().mean()
