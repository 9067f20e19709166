# id = "368"
# cause = "generator_device"
# also_causes = []
# culprit = "repro.generator"
# also_culprit = ["generator", "train_loader.generator", "train_loader.sampler.generator", "train_loader", "repro", "self.generator"]
# culprit_cell = 4
# origin_cell = 2
# also_cells = [2, 3, 5]
# origin = "self.generator = torch.Generator(device=device).manual_seed(seed)"
# culprit_device = "DEV"
# other_device = "HOST"
# fail_cell = 5
# fix_site = "earlier cell"
# visible = "only in an object attribute"
# expect_after_fix = "steps == 3 and rec.device == torch.device(DEV)"
# # the noise needs its generator on the card, the shuffling one on the host: two generators
# [[ref_fix]]
# op = "replace"
# cell = 4
# old = "generator=repro.generator)"
# new = "generator=torch.Generator().manual_seed(repro.seed))"
# [rerun]
# cells = [4, 5]

# %%
import random
import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

# %%
class Reproducible:
    def __init__(self, seed, device):
        self.seed = seed
        random.seed(seed); np.random.seed(seed)
        self.generator = torch.Generator(device=device).manual_seed(seed)

    def noise_like(self, x, sigma):
        return sigma * torch.randn(x.shape, generator=self.generator, device=x.device)

repro = Reproducible(2024, DEV)

# %%
class DenoisingAE(nn.Module):
    def __init__(self, d=10, k=4, sigma=0.2):
        super().__init__()
        self.sigma = sigma
        self.enc = nn.Sequential(nn.Linear(d, k), nn.ReLU())
        self.dec = nn.Linear(k, d)
    def forward(self, x):
        if self.training:
            x = x + repro.noise_like(x, self.sigma)
        return self.dec(self.enc(x))

dae = DenoisingAE().to(DEV)
print(dae(torch.zeros(1, 10, device=DEV)).shape)

# %%
def make_loader(x, bs, generator):
    return DataLoader(TensorDataset(x), batch_size=bs, shuffle=True, generator=generator)

signals = torch.rand(12, 10)
train_loader = make_loader(signals, bs=4, generator=repro.generator)

# %%
opt = torch.optim.SGD(dae.parameters(), lr=0.1)
steps = 0
for (x,) in train_loader:
    x = x.to(DEV)
    rec = dae(x)
    loss = (rec - x).square().mean()
    opt.zero_grad(); loss.backward(); opt.step()
    steps += 1
