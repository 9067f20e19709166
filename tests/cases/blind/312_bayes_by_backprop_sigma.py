# id = "312"
# cause = "derived_tensor_in_init"
# also_causes = ["plain_tensor_attribute"]
# culprit = "self.w_sigma"
# also_culprit = ["bnn.fc1.w_sigma", "self.fc1.w_sigma"]
# culprit_cell = 2
# origin_cell = 2
# also_cells = []
# origin = "self.w_sigma = F.softplus(self.w_rho)"
# culprit_device = "HOST"
# other_device = "DEV"
# fail_cell = 5
# fix_site = "class __init__"
# visible = "only in an object attribute"
# expect_after_fix = "elbo.device == torch.device(DEV) and all(p.grad is not None for p in bnn.parameters())"
# [[ref_fix]]
# op = "replace"
# cell = 2
# old = "        self.w_sigma = F.softplus(self.w_rho)\n"
# new = ""
# [[ref_fix]]
# op = "replace"
# cell = 2
# old = "    def kl(self):"
# new = "    @property\n    def w_sigma(self):\n        return F.softplus(self.w_rho)\n\n    def kl(self):"
# [rerun]
# cells = [2, 3, 4, 5]

# %%
import torch
import torch.nn as nn
import torch.nn.functional as F

# %%
class BayesLinear(nn.Module):
    """mean-field gaussian posterior, N(0, prior_sigma) prior"""
    def __init__(self, n_in, n_out, prior_sigma=1.0):
        super().__init__()
        self.prior_sigma = prior_sigma
        self.w_mu = nn.Parameter(torch.randn(n_out, n_in) * 0.1)
        self.w_rho = nn.Parameter(torch.full((n_out, n_in), -3.0))
        self.bias = nn.Parameter(torch.zeros(n_out))
        self.w_sigma = F.softplus(self.w_rho)

    def kl(self):
        p = self.prior_sigma
        return (torch.log(p / self.w_sigma) + (self.w_sigma ** 2 + self.w_mu ** 2) / (2 * p * p) - 0.5).sum()

    def forward(self, x, sample=True):
        if not sample:
            return F.linear(x, self.w_mu, self.bias)
        eps = torch.randn_like(self.w_mu)
        return F.linear(x, self.w_mu + self.w_sigma * eps, self.bias)

# %%
class BNN(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1, self.fc2 = BayesLinear(3, 8), BayesLinear(8, 1)
    def forward(self, x, **kw):
        return self.fc2(torch.tanh(self.fc1(x, **kw)), **kw)
    def kl(self):
        return sum(m.kl() for m in self.modules() if isinstance(m, BayesLinear))

# %%
bnn = BNN().to(DEV)
x = torch.rand(10, 3).to(DEV)
y = (x.sum(1, keepdim=True) * 2).sin()
map_fit = F.mse_loss(bnn(x, sample=False), y).item()     # means only: fine

# %%
elbo = F.mse_loss(bnn(x), y, reduction='sum') + bnn.kl() / len(x)
elbo.backward()
