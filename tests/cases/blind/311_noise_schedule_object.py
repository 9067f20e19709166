# id = "311"
# cause = "plain_tensor_attribute"
# also_causes = ["index_device"]
# culprit = "self.alphas_cumprod"
# also_culprit = ["scheduler.alphas_cumprod", "scheduler", "self.scheduler", "self.scheduler.alphas_cumprod", "ddpm.scheduler"]
# culprit_cell = 2
# origin_cell = 2
# also_cells = [4, 3]
# origin = "self.alphas_cumprod = torch.cumprod(1.0 - betas, dim=0)"
# culprit_device = "HOST"
# other_device = "DEV"
# fail_cell = 5
# fix_site = "class of the notebook"
# visible = "only in an object attribute"
# expect_after_fix = "loss.device == torch.device(DEV)"
# [[ref_fix]]
# op = "replace"
# cell = 2
# old = "a = self.alphas_cumprod[timesteps]"
# new = "a = self.alphas_cumprod.to(timesteps.device)[timesteps]"
# [rerun]
# cells = [2, 4, 5]

# %%
import torch
import torch.nn.functional as F
from torch import nn

# %%
class LinearScheduler:
    def __init__(self, num_train_timesteps=50, beta_start=1e-4, beta_end=0.02):
        self.num_train_timesteps = num_train_timesteps
        betas = torch.linspace(beta_start, beta_end, num_train_timesteps)
        self.alphas_cumprod = torch.cumprod(1.0 - betas, dim=0)

    def add_noise(self, x0, noise, timesteps):
        a = self.alphas_cumprod[timesteps]
        a = a.view(-1, *[1] * (x0.ndim - 1))
        return a.sqrt() * x0 + (1 - a).sqrt() * noise

# %%
class TinyUNet(nn.Module):
    def __init__(self, ch=4, T=50):
        super().__init__()
        self.time = nn.Embedding(T, ch)
        self.inp, self.out = nn.Conv2d(1, ch, 3, padding=1), nn.Conv2d(ch, 1, 3, padding=1)
    def forward(self, x, t):
        return self.out(F.silu(self.inp(x) + self.time(t)[:, :, None, None]))

class DDPM(nn.Module):
    def __init__(self, unet, scheduler):
        super().__init__()
        self.unet, self.scheduler = unet, scheduler

    def forward(self, x0):
        noise = torch.randn_like(x0)
        t = torch.randint(0, self.scheduler.num_train_timesteps, (x0.size(0),), device=x0.device)
        pred = self.unet(self.scheduler.add_noise(x0, noise, t), t)
        return F.mse_loss(pred, noise)

# %%
scheduler = LinearScheduler()
ddpm = DDPM(TinyUNet(), scheduler).to(DEV)
opt = torch.optim.AdamW(ddpm.parameters(), lr=1e-3)

# %%
digits = torch.rand(4, 1, 8, 8) * 2 - 1
loss = ddpm(digits.to(DEV))
opt.zero_grad()
loss.backward()
opt.step()
