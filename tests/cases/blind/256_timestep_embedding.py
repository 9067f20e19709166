# id = "256"
# cause = "fresh_tensor_no_device"
# also_causes = ["input_not_moved"]
# culprit = "t"
# also_culprit = ["timesteps"]
# culprit_cell = 4
# origin_cell = 4
# also_cells = [3]
# origin = "t = torch.randint(0, steps, (x0.shape[0] // 2 + 1,))"
# culprit_device = "HOST"
# other_device = "DEV"
# fail_cell = 5
# fix_site = "a user function in the traceback"
# visible = "first user frame (and the argument of the library function that raises)"
# expect_after_fix = "all(p.grad.device == torch.device(DEV) for p in eps_model.parameters()) and loss.device == torch.device(DEV)"
# [[ref_fix]]
# op = "replace"
# cell = 4
# old = "(x0.shape[0] // 2 + 1,))"
# new = "(x0.shape[0] // 2 + 1,), device=x0.device)"
# [rerun]
# cells = [4, 5]

# %%
import sys, tempfile, pathlib
site = pathlib.Path(tempfile.mkdtemp())
(site / "minidiff.py").write_text('''
import math
import torch

class SinusoidTable(torch.nn.Module):
    def __init__(self, dim):
        super().__init__()
        half = dim // 2
        self.register_buffer("freqs", torch.exp(-math.log(1e4) * torch.arange(half) / half))

    def forward(self, timesteps):
        angles = torch.einsum("b,f->bf", timesteps.float(), self.freqs)
        return torch.cat([angles.sin(), angles.cos()], dim=-1)
''')
sys.path.insert(0, str(site))

# %%
import torch
from torch import nn
from minidiff import SinusoidTable

# %%
class EpsModel(nn.Module):
    def __init__(self, d=4, t_dim=6):
        super().__init__()
        self.time = nn.Sequential(SinusoidTable(t_dim), nn.Linear(t_dim, d))
        self.net = nn.Sequential(nn.Linear(d, 16), nn.SiLU(), nn.Linear(16, d))

    def forward(self, x, t):
        return self.net(x + self.time(t))

# %%
def antithetic_loss(eps_model, x0, alpha_bar):
    steps = len(alpha_bar)
    t = torch.randint(0, steps, (x0.shape[0] // 2 + 1,))
    t = torch.cat([t, steps - 1 - t])[:x0.shape[0]]
    a = alpha_bar[t][:, None]
    noise = torch.randn_like(x0)
    x_t = a.sqrt() * x0 + (1 - a).sqrt() * noise
    return (eps_model(x_t, t) - noise).pow(2).mean()

# %%
alpha_bar = torch.linspace(0.999, 0.01, 50, device=DEV)
eps_model = EpsModel().to(DEV)
opt = torch.optim.AdamW(eps_model.parameters(), lr=1e-3)
x0 = torch.randn(5, 4, device=DEV)
loss = antithetic_loss(eps_model, x0, alpha_bar)
opt.zero_grad(); loss.backward(); opt.step()
