# id = "314"
# cause = "hardcoded_device"
# also_causes = []
# culprit = "x"
# also_culprit = ["torch.randn(n, cfg.dim, device=cfg.device)"]
# culprit_cell = 3
# origin_cell = 1
# also_cells = [4, 5]
# origin = "device: str = 'cpu'"
# culprit_device = "HOST"
# other_device = "DEV"
# fail_cell = 5
# fix_site = "earlier cell"
# visible = "first user frame"
# expect_after_fix = "samples.device == torch.device(DEV)"
# [[ref_fix]]
# op = "replace"
# cell = 5
# old = "SamplerConfig(steps=3)"
# new = "SamplerConfig(steps=3, device=DEV)"
# [rerun]
# cells = [5]

# %%
import torch
from torch import nn
from dataclasses import dataclass

@dataclass(frozen=True)
class SamplerConfig:
    dim: int = 2
    steps: int = 10
    sigma_max: float = 5.0
    device: str = 'cpu'

# %%
class ScoreNet(nn.Module):
    def __init__(self, dim=2, width=16):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(dim, width), nn.SiLU(), nn.Linear(width, dim))
    def forward(self, x, sigma):
        return self.net(x) / sigma

# %%
def sigmas(cfg):
    return [cfg.sigma_max * (1 - i / cfg.steps) for i in range(cfg.steps + 1)]

@torch.no_grad()
def sample_euler(score, n, cfg):
    x = torch.randn(n, cfg.dim, device=cfg.device) * cfg.sigma_max
    for s, s_next in zip(sigmas(cfg)[:-1], sigmas(cfg)[1:]):
        d = -s * score(x, s)
        x = x + (s_next - s) * d
    return x

# %%
score = ScoreNet().to(DEV)
opt = torch.optim.Adam(score.parameters(), lr=1e-2)
moons = torch.randn(16, 2, device=DEV)
for _ in range(3):
    eps = torch.randn_like(moons)
    loss = (score(moons + 0.5 * eps, 0.5) * 0.5 + eps).pow(2).mean()
    opt.zero_grad(); loss.backward(); opt.step()

# %%
samples = sample_euler(score, 5, SamplerConfig(steps=3))
print(samples.mean(0))
