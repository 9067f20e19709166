# id = "180"
# cause = "plain_tensor_attribute"
# also_causes = []
# culprit = "self._loc"
# also_culprit = ["self._scale", "self.prior", "lvm._loc", "lvm._scale", "lvm", "D.Normal(self._loc, self._scale)"]
# culprit_cell = 1
# origin_cell = 1
# also_cells = [2, 3]
# origin = "self._loc, self._scale = torch.zeros(z), torch.ones(z)"
# culprit_device = "HOST"
# other_device = "DEV"
# fail_cell = 3
# fix_site = "class __init__"
# visible = "only in an object attribute"
# expect_after_fix = "kl.device == torch.device(DEV) and x_hat.device == torch.device(DEV)"
# [[ref_fix]]
# op = "replace"
# cell = 1
# old = "self._loc, self._scale = torch.zeros(z), torch.ones(z)"
# new = "self.register_buffer('_loc', torch.zeros(z)); self.register_buffer('_scale', torch.ones(z))"
# [rerun]
# cells = [1, 2, 3]

# %%
import torch
from torch import nn, distributions as D

class LatentModel(nn.Module):
    def __init__(self, z=3):
        super().__init__()
        self.z = z
        self.mu, self.dec = nn.Linear(5, z), nn.Linear(z, 5)
        self._loc, self._scale = torch.zeros(z), torch.ones(z)

    @property
    def prior(self):
        return D.Normal(self._loc, self._scale)

    def forward(self, x):
        q = D.Normal(self.mu(x), 1.0)
        z = q.mean
        kl = D.kl_divergence(q, self.prior).sum(-1)
        return self.dec(z), kl

# %%
lvm = LatentModel().to(DEV)

# %%
x_hat, kl = lvm(torch.randn(2, 5, device=DEV))
