# id = "344"
# cause = "fresh_tensor_no_device"
# also_causes = []
# culprit = "diag"
# also_culprit = ["self_mask(len(z))", "torch.eye(n, dtype=torch.bool)"]
# culprit_cell = 3
# origin_cell = 2
# also_cells = []
# origin = "return torch.eye(n, dtype=torch.bool)"
# culprit_device = "HOST"
# other_device = "DEV"
# fail_cell = 5
# fix_site = "a function in an earlier cell"
# visible = "raising frame"
# expect_after_fix = "losses[-1].device == torch.device(DEV) and len(losses) == 2"
# [[ref_fix]]
# op = "replace"
# cell = 3
# old = "diag = self_mask(len(z))"
# new = "diag = self_mask(len(z)).to(sim.device)"
# [rerun]
# cells = [3, 5]

# %%
import torch
from torch import nn
import torch.nn.functional as F

# %%
def self_mask(n):
    """True where a view is compared with itself"""
    return torch.eye(n, dtype=torch.bool)

def positives(n, device):
    return torch.arange(n, device=device).roll(n // 2)

# %%
def info_nce(z1, z2, temperature=0.1):
    z = F.normalize(torch.cat([z1, z2]), dim=1)
    sim = z @ z.T / temperature
    diag = self_mask(len(z))
    sim = sim.masked_fill(diag, float('-inf'))
    return F.cross_entropy(sim, positives(len(z), sim.device))

# %%
class Encoder(nn.Module):
    def __init__(self, d=12, out=6):
        super().__init__()
        self.backbone = nn.Sequential(nn.Linear(d, 16), nn.ReLU())
        self.projector = nn.Sequential(nn.Linear(16, 16), nn.ReLU(), nn.Linear(16, out))
    def forward(self, x):
        return self.projector(self.backbone(x))

def augment(x):
    return x + 0.1 * torch.randn_like(x)

simclr = Encoder().to(DEV)
opt = torch.optim.SGD(simclr.parameters(), lr=0.01)

# %%
losses = []
for batch in torch.rand(2, 8, 12):
    batch = batch.to(DEV, non_blocking=True)
    loss = info_nce(simclr(augment(batch)), simclr(augment(batch)))
    opt.zero_grad(); loss.backward(); opt.step()
    losses.append(loss.detach())
