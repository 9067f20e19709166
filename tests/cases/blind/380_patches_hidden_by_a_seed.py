# id = "380"
# cause = "generator_device"
# also_causes = []
# culprit = "self.cfg.rng"
# also_culprit = ["self.cfg", "cfg", "cfg.rng", "mae.cfg.rng", "mae.cfg", "rng"]
# culprit_cell = 3
# origin_cell = 2
# also_cells = [2, 4, 5]
# origin = "rng: torch.Generator = field(default_factory=seeded)"
# culprit_device = "HOST"
# other_device = "DEV"
# fail_cell = 5
# fix_site = "forward"
# visible = "only in an object attribute"
# expect_after_fix = "loss.device == torch.device(DEV) and hidden.device == torch.device(DEV) and float(hidden.sum()) == 4 * 12"
# # which patches are hidden has to depend on the seed still: a draw without the generator gives other numbers
# [[ref_fix]]
# op = "replace"
# cell = 3
# old = "torch.rand(n, length, generator=self.cfg.rng, device=tokens.device)"
# new = "torch.rand(n, length, generator=self.cfg.rng).to(tokens.device)"
# [rerun]
# cells = [3, 4, 5]

# %%
from dataclasses import dataclass, field
import torch
from torch import nn

# %%
def seeded(value=1234):
    g = torch.Generator()
    g.manual_seed(value)
    return g

@dataclass
class MAEConfig:
    patch: int = 2
    width: int = 12
    ratio: float = 0.75
    rng: torch.Generator = field(default_factory=seeded)

# %%
class MAE(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.cfg = cfg
        pixels = 3 * cfg.patch ** 2
        self.embed = nn.Linear(pixels, cfg.width)
        self.pos = nn.Parameter(0.02 * torch.randn(1, 16, cfg.width))
        self.mask_token = nn.Parameter(torch.zeros(1, 1, cfg.width))
        self.decoder = nn.Sequential(nn.Linear(cfg.width, 24), nn.GELU(), nn.Linear(24, pixels))

    def patches(self, img):
        p = self.cfg.patch
        return img.unfold(2, p, p).unfold(3, p, p).permute(0, 2, 3, 1, 4, 5).flatten(3).flatten(1, 2)

    def hide(self, tokens):
        n, length = tokens.shape[:2]
        noise = torch.rand(n, length, generator=self.cfg.rng, device=tokens.device)
        order = noise.argsort(1)
        hidden = torch.ones(n, length, device=tokens.device)
        return hidden.scatter(1, order[:, : int(length * (1 - self.cfg.ratio))], 0.0)

    def forward(self, img):
        target = self.patches(img)
        tokens = self.embed(target)
        hidden = self.hide(tokens)
        tokens = torch.where(hidden.bool().unsqueeze(-1), self.mask_token, tokens) + self.pos
        err = (self.decoder(tokens) - target).square().mean(-1)
        return (err * hidden).sum() / hidden.sum(), hidden

# %%
mae = MAE(MAEConfig())
device = torch.device(DEV)
mae.to(device)

# %%
loss, hidden = mae(torch.rand(4, 3, 8, 8, device=device))
