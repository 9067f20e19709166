# id = "399"
# cause = "module_in_plain_container"
# also_causes = []
# culprit = "net"
# also_culprit = ["self.steps", "flow.steps", "flow.steps[0]", "flow.steps[0].keywords['net']", "self.steps[0]", "step"]
# culprit_cell = 2
# origin_cell = 3
# also_cells = [2, 4]
# origin = "self.steps = [partial(couple, net=subnet(dim // 2), swap=bool(k % 2)) for k in range(depth)]"
# culprit_device = "HOST"
# other_device = "DEV"
# fail_cell = 5
# fix_site = "class __init__"
# visible = "only in an object attribute"
# expect_after_fix = "nats.device == torch.device(DEV) and nats.shape == (10,)"
# [[ref_fix]]
# op = "replace"
# cell = 3
# old = "self.steps = [partial(couple, net=subnet(dim // 2), swap=bool(k % 2)) for k in range(depth)]"
# new = "self.nets = nn.ModuleList([subnet(dim // 2) for k in range(depth)]); self.steps = [partial(couple, net=n, swap=bool(k % 2)) for k, n in enumerate(self.nets)]"
# [rerun]
# cells = [3, 4, 5]

# %%
import math
from functools import partial
import torch
from torch import nn

def subnet(half, width=10):
    return nn.Sequential(nn.Linear(half, width), nn.Tanh(), nn.Linear(width, 2 * half))

# %%
def couple(z, logdet, *, net, swap):
    a, b = z.chunk(2, dim=-1)
    if swap:
        a, b = b, a
    s, t = net(a).chunk(2, dim=-1)
    s = torch.tanh(s)
    b = b * s.exp() + t
    z = torch.cat([b, a] if swap else [a, b], dim=-1)
    return z, logdet + s.sum(-1)

# %%
class Flow(nn.Module):
    def __init__(self, dim=4, depth=3):
        super().__init__()
        self.scale = nn.Parameter(torch.zeros(dim))          # act-norm in front
        self.shift = nn.Parameter(torch.zeros(dim))
        self.steps = [partial(couple, net=subnet(dim // 2), swap=bool(k % 2)) for k in range(depth)]

    def log_prob(self, x):
        z = (x + self.shift) * self.scale.exp()
        logdet = self.scale.sum().expand(len(x))
        for step in self.steps:
            z, logdet = step(z, logdet)
        return logdet - 0.5 * (z.pow(2) + math.log(2 * math.pi)).sum(-1)

# %%
flow = Flow().to(DEV)
print(sum(p.numel() for p in flow.parameters()), "parameters")     # suspiciously few

# %%
nats = -flow.log_prob(torch.randn(10, 4).to(DEV))
