# id = "351"
# cause = "plain_tensor_attribute"
# also_causes = []
# culprit = "self.prior"
# also_culprit = ["self.prior.loc", "flow.prior", "flow.prior.loc", "flow.prior.scale", "self.prior.scale", "prior", "self.loc", "self.scale"]
# culprit_cell = 3
# origin_cell = 4
# also_cells = [5]
# origin = "prior = Normal(torch.zeros(2), torch.ones(2))"
# culprit_device = "HOST"
# other_device = "DEV"
# fail_cell = 5
# fix_site = "earlier cell"
# visible = "only in an object attribute"
# expect_after_fix = "nll.device == torch.device(DEV)"
# [[ref_fix]]
# op = "replace"
# cell = 4
# old = "prior = Normal(torch.zeros(2), torch.ones(2))"
# new = "prior = Normal(torch.zeros(2, device=DEV), torch.ones(2, device=DEV))"
# [rerun]
# cells = [4, 5]

# %%
import torch
from torch import nn
from torch.distributions import Normal

# %%
class Coupling(nn.Module):
    def __init__(self, mask):
        super().__init__()
        self.register_buffer('mask', mask)
        self.s = nn.Sequential(nn.Linear(2, 8), nn.LeakyReLU(), nn.Linear(8, 2), nn.Tanh())
        self.t = nn.Sequential(nn.Linear(2, 8), nn.LeakyReLU(), nn.Linear(8, 2))
    def forward(self, x):
        xm = x * self.mask
        s, t = self.s(xm) * (1 - self.mask), self.t(xm) * (1 - self.mask)
        return xm + (1 - self.mask) * (x * s.exp() + t), s.sum(-1)

# %%
class RealNVP(nn.Module):
    def __init__(self, layers, prior):
        super().__init__()
        self.layers = nn.ModuleList(layers)
        self.prior = prior

    def f(self, x):
        log_det = x.new_zeros(len(x))
        for layer in self.layers:
            x, ld = layer(x)
            log_det = log_det + ld
        return x, log_det

    def log_prob(self, x):
        z, log_det = self.f(x)
        return self.prior.log_prob(z).sum(-1) + log_det

# %%
prior = Normal(torch.zeros(2), torch.ones(2))
masks = torch.tensor([[0., 1.], [1., 0.]]).repeat(2, 1)
flow = RealNVP([Coupling(m) for m in masks], prior).to(DEV)
opt = torch.optim.Adam(flow.parameters(), lr=1e-4)

# %%
moons = torch.rand(16, 2) * 2 - 0.5
for t in range(2):
    nll = -flow.log_prob(moons.to(DEV)).mean()
    opt.zero_grad()
    nll.backward()
    opt.step()
