# id = "262"
# cause = "plain_tensor_attribute"
# also_causes = []
# culprit = "table"
# also_culprit = ["self.sched.alpha_bar", "self.sched", "process.sched.alpha_bar"]
# culprit_cell = 3
# origin_cell = 2
# also_cells = [4, 5]
# origin = "self.alpha_bar = (f / f[0])[1:].clamp(min=1e-4)"
# culprit_device = "HOST"
# other_device = "DEV"
# fail_cell = 5
# fix_site = "class __init__"
# visible = "raising frame (a name), kept in a dataclass"
# expect_after_fix = "noisy.device == torch.device(DEV) and noisy.shape == (4, 2, 3)"
# [[ref_fix]]
# op = "replace"
# cell = 3
# old = "vals = table.gather(-1, t)"
# new = "vals = table.to(t.device).gather(-1, t)"
# [rerun]
# cells = [3, 4, 5]

# %%
import math
from dataclasses import dataclass, field
import torch

# %%
@dataclass
class CosineSchedule:
    steps: int = 20
    s: float = 0.008
    alpha_bar: torch.Tensor = field(init=False)

    def __post_init__(self):
        u = torch.linspace(0, 1, self.steps + 1)
        f = torch.cos((u + self.s) / (1 + self.s) * math.pi / 2) ** 2
        self.alpha_bar = (f / f[0])[1:].clamp(min=1e-4)

# %%
def pick(table, t, ndim):
    """table[t], shaped for broadcasting over the sample"""
    vals = table.gather(-1, t)
    return vals.reshape(-1, *(1,) * (ndim - 1))

# %%
class ForwardProcess(torch.nn.Module):
    def __init__(self, sched):
        super().__init__()
        self.sched = sched
        self.register_buffer("sigma_data", torch.tensor(0.5))

    def forward(self, x, t, eps):
        ab = pick(self.sched.alpha_bar, t, x.ndim)
        return ab.sqrt() * x / self.sigma_data + (1 - ab).sqrt() * eps

# %%
process = ForwardProcess(CosineSchedule(steps=10)).to(DEV)
x = torch.ones(4, 2, 3, device=DEV)
t = torch.tensor([0, 3, 6, 9], device=x.device)
noisy = process(x, t, torch.randn_like(x))
