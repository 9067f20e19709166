# id = "106"
# cause = "fresh_tensor_no_device"
# also_causes = ["input_not_moved"]
# culprit = "t"
# also_culprit = ["torch.randint(0, T, (x0.size(0),))", "t[:, None].float()", "t[:, None]"]
# culprit_cell = 2
# origin_cell = 3
# also_cells = []
# origin = "t = torch.randint(0, T, (x0.size(0),))"
# culprit_device = "HOST"
# other_device = "DEV"
# fail_cell = 5
# fix_site = "a function in an earlier cell"
# visible = "first user frame"
# expect_after_fix = "last.device == torch.device(DEV) and eps_model is not None"
# # alphas_bar[t] is allowed: an index may stay on the host
# [[ref_fix]]
# op = "replace"
# cell = 3
# old = "torch.randint(0, T, (x0.size(0),))"
# new = "torch.randint(0, T, (x0.size(0),), device=x0.device)"
# [rerun]
# cells = [3, 5]

# %%
import math
import torch, torch.nn as nn, torch.nn.functional as F
T = 50
betas = torch.linspace(1e-4, 0.02, T).to(DEV)
alphas_bar = torch.cumprod(1 - betas, 0)

# %%
def timestep_embedding(t, dim, max_period=10_000):
    half = dim // 2
    freqs = torch.exp(-math.log(max_period) * torch.arange(half, device=DEV) / half)
    args = t[:, None].float() * freqs[None]
    return torch.cat([args.cos(), args.sin()], -1)

class Denoiser(nn.Module):
    def __init__(self, dim=8):
        super().__init__()
        self.t_mlp, self.body = nn.Linear(dim, dim), nn.Linear(dim, dim)
    def forward(self, x, t):
        return self.body(x + self.t_mlp(timestep_embedding(t, x.size(-1))))

# %%
def train_step(model, opt, x0):
    t = torch.randint(0, T, (x0.size(0),))
    noise = torch.randn_like(x0)
    ab = alphas_bar[t][:, None]
    xt = ab.sqrt() * x0 + (1 - ab).sqrt() * noise
    loss = F.mse_loss(model(xt, t), noise)
    opt.zero_grad(); loss.backward(); opt.step()
    return loss.detach()

# %%
eps_model = Denoiser().to(DEV)
optim = torch.optim.Adam(eps_model.parameters())

# %%
%%time
for it in range(3):
    last = train_step(eps_model, optim, torch.randn(6, 8, device=DEV))
