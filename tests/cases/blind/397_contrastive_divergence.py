# id = "397"
# cause = "generator_device"
# also_causes = []
# culprit = "self.rng"
# also_culprit = ["rbm.sampler.rng", "self.sampler.rng", "sampler.rng", "rng", "self.sampler", "rbm.sampler"]
# culprit_cell = 2
# origin_cell = 2
# also_cells = [3, 4]
# origin = "self.rng = torch.Generator().manual_seed(seed)"
# culprit_device = "HOST"
# other_device = "DEV"
# fail_cell = 5
# fix_site = "class of the notebook (base class)"
# visible = "raising frame"
# expect_after_fix = "gap.device == torch.device(DEV) and rbm.W.device == torch.device(DEV)"
# [[ref_fix]]
# op = "replace"
# cell = 4
# old = "rbm = RBM(12, 7, GibbsSampler(seed=11)).to(DEV)"
# new = "rbm = RBM(12, 7, GibbsSampler(seed=11)).to(DEV); rbm.sampler.rng = torch.Generator(device=DEV).manual_seed(11)"
# [rerun]
# cells = [4, 5]

# %%
import torch
from torch import nn

# %%
class Sampler:
    """reproducible draws, independent of whatever else uses the global seed"""
    def __init__(self, seed=0):
        self.rng = torch.Generator().manual_seed(seed)

    def flip(self, p):
        return torch.bernoulli(p, generator=self.rng)

class GibbsSampler(Sampler):
    def chain(self, rbm, v, k):
        for _ in range(k):
            h = self.flip(rbm.hidden(v))
            v = self.flip(rbm.visible(h))
        return v

# %%
class RBM(nn.Module):
    def __init__(self, n_vis, n_hid, sampler):
        super().__init__()
        self.W = nn.Parameter(0.1 * torch.randn(n_hid, n_vis))
        self.bv, self.bh = nn.Parameter(torch.zeros(n_vis)), nn.Parameter(torch.zeros(n_hid))
        self.sampler = sampler

    def hidden(self, v):
        return torch.sigmoid(v @ self.W.T + self.bh)

    def visible(self, h):
        return torch.sigmoid(h @ self.W + self.bv)

    def free_energy(self, v):
        return -(v @ self.bv) - nn.functional.softplus(v @ self.W.T + self.bh).sum(-1)

# %%
rbm = RBM(12, 7, GibbsSampler(seed=11)).to(DEV)
energy = rbm.free_energy(torch.ones(3, 12, device=DEV))     # fine

# %%
data = (torch.rand(16, 12) < 0.3).float().to(DEV)
with torch.no_grad():
    fantasy = rbm.sampler.chain(rbm, data, k=2)
gap = (rbm.free_energy(data) - rbm.free_energy(fantasy)).mean()
gap.backward()
