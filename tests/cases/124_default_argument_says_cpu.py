# id = "124"
# cause = "hardcoded_device"
# also_causes = ["fresh_tensor_no_device", "stray_in_collection"]
# culprit = "xy"
# also_culprit = ["make_grid(h, w)", "xy.expand(z.shape[0], -1, -1)"]
# culprit_cell = 2
# origin_cell = 1
# also_cells = []
# origin = "def make_grid(h, w, device=\"cpu\"):"
# culprit_device = "HOST"
# other_device = "DEV"
# fail_cell = 3
# fix_site = "forward"
# visible = "raising frame"
# expect_after_fix = "rgb.device == torch.device(DEV)"
# [[ref_fix]]
# op = "replace"
# cell = 2
# old = "make_grid(h, w)"
# new = "make_grid(h, w, device=z.device)"
# [rerun]
# cells = [2, 3]

# %%
import torch
from torch import nn

def make_grid(h, w, device="cpu"):
    """(h*w, 2) coordinates in [-1, 1]"""
    ys, xs = torch.meshgrid(torch.linspace(-1, 1, h, device=device),
                            torch.linspace(-1, 1, w, device=device), indexing="ij")
    return torch.stack([xs, ys], dim=-1).reshape(-1, 2)

# %%
class FieldDecoder(nn.Module):
    def __init__(self, latent=4):
        super().__init__()
        self.mlp = nn.Sequential(nn.Linear(latent + 2, 16), nn.SiLU(), nn.Linear(16, 3))

    def forward(self, z, h=4, w=5):
        xy = make_grid(h, w)
        inp = torch.cat((z[:, None].expand(-1, h * w, -1), xy.expand(z.shape[0], -1, -1)), dim=-1)
        return self.mlp(inp).unflatten(1, (h, w))

# %%
dec = FieldDecoder().to(DEV)
rgb = dec(torch.randn(2, 4, device=DEV))
