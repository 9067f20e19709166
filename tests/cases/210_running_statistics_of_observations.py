# id = "210"
# cause = "plain_tensor_attribute"
# also_causes = ["fresh_tensor_no_device", "metric_state"]
# culprit = "self.mean"
# also_culprit = ["norm.mean", "norm", "self.m2", "norm.m2"]
# culprit_cell = 1
# origin_cell = 2
# also_cells = [3]
# origin = "norm = RunningNorm(3).update(torch.randn(5, 3))"
# culprit_device = "HOST"
# other_device = "DEV"
# fail_cell = 3
# fix_site = "earlier cell"
# visible = "only in an object attribute"
# expect_after_fix = "value.device == torch.device(DEV)"
# [[ref_fix]]
# op = "run"
# code = "norm.mean, norm.m2 = norm.mean.to(DEV), norm.m2.to(DEV)"

# %%
import torch
from torch import nn

class RunningNorm:
    """mean and variance of all that was seen (Welford)"""
    __slots__ = ("n", "mean", "m2")

    def __init__(self, shape):
        self.n, self.mean, self.m2 = 0, torch.zeros(shape), torch.zeros(shape)

    def update(self, x):
        for row in x:
            self.n += 1
            delta = row - self.mean
            self.mean = self.mean + delta / self.n
            self.m2 = self.m2 + delta * (row - self.mean)
        return self

    def __call__(self, x):
        return (x - self.mean) / (self.m2 / max(self.n - 1, 1) + 1e-8).sqrt()

# %%
norm = RunningNorm(3).update(torch.randn(5, 3))
critic = nn.Linear(3, 1).to(DEV)

# %%
value = critic(norm(torch.randn(2, 3, device=DEV))); value.sum().backward()
