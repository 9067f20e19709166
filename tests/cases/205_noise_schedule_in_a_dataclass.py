# id = "205"
# cause = "fresh_tensor_no_device"
# also_causes = ["plain_tensor_attribute", "input_not_moved"]
# culprit = "sigma"
# also_culprit = ["now", "now.expand(n, 1)", "schedule.sigmas", "schedule", "nxt"]
# culprit_cell = 2
# origin_cell = 1
# also_cells = [3]
# origin = "ramp = torch.linspace(0, 1, n)"
# culprit_device = "HOST"
# other_device = "DEV"
# fail_cell = 3
# fix_site = "class of the notebook"
# visible = "raising frame"
# expect_after_fix = "x0.device == torch.device(DEV)"
# # nxt - now is 0-dim and may stay on the host
# [[ref_fix]]
# op = "replace"
# cell = 2
# old = "sigma = now.expand(n, 1)"
# new = "sigma = now.to(x.device).expand(n, 1)"
# [rerun]
# cells = [2, 3]

# %%
import math
import torch
from torch import nn
from dataclasses import dataclass

@dataclass(frozen=True)
class Schedule:
    sigmas: torch.Tensor

    @classmethod
    def karras(cls, n, lo=0.1, hi=10.0, rho=7.0):
        ramp = torch.linspace(0, 1, n)
        return cls((hi ** (1 / rho) + ramp * (lo ** (1 / rho) - hi ** (1 / rho))) ** rho)

    def pairs(self):
        yield from zip(self.sigmas[:-1], self.sigmas[1:])

# %%
denoise = nn.Linear(4, 4).to(DEV)

@torch.no_grad()
def sample(x, schedule):
    n = x.shape[0]
    for now, nxt in schedule.pairs():
        sigma = now.expand(n, 1)
        d = (x - denoise(x / sigma)) / sigma
        x = x + d * (nxt - now)
    return x

# %%
schedule = Schedule.karras(4)
x0 = sample(10 * torch.randn(2, 4, device=DEV), schedule)
