# id = "223"
# cause = "ema_shadow"
# also_causes = ["model_not_moved"]
# culprit = "self.avg"
# also_culprit = ["a", "a.clone()", "ema.avg", "ema.avg[0]", "net", "ema.net", "self.net"]
# culprit_cell = 2
# origin_cell = 2
# also_cells = [3, 4]
# origin = "self.avg = [p.detach().to(store_on, copy=True) for p in net.parameters()]"
# culprit_device = "HOST"
# other_device = "DEV"
# fail_cell = 4
# fix_site = "class of the notebook"
# visible = "only in an object attribute"
# expect_after_fix = "samples.device == torch.device(DEV) and all(p.device == torch.device(DEV) for p in denoiser.parameters())"
# # the finally clause has put the card's weights back by the time anyone looks: only the average still shows the host
# [[ref_fix]]
# op = "replace"
# cell = 2
# old = "p.data = a.clone()"
# new = "p.data = a.to(p.device, copy=True)"
# [rerun]
# cells = [2, 3, 4]

# %%
import contextlib
import torch
from torch import nn

class Silu2d(nn.Sequential):
    """(x, y, t) -> predicted noise"""
    def __init__(self, width):
        super().__init__(nn.Linear(3, width), nn.SiLU(), nn.Linear(width, 2))

# %%
class WeightAverage:
    """keeps the average in host memory (the card is full)"""
    def __init__(self, net, beta=0.99, store_on=HOST):
        self.net, self.beta = net, beta
        self.avg = [p.detach().to(store_on, copy=True) for p in net.parameters()]

    def update(self):
        for a, p in zip(self.avg, self.net.parameters()):
            a.lerp_(p.detach().to(a.device), 1 - self.beta)

    @contextlib.contextmanager
    def swapped_in(self):
        self.backup = [p.data for p in self.net.parameters()]
        for p, a in zip(self.net.parameters(), self.avg):
            p.data = a.clone()
        try:
            yield self.net
        finally:
            for p, b in zip(self.net.parameters(), self.backup):
                p.data = b

# %%
def sample(net, n, steps=4):
    x = torch.linspace(-1, 1, 2 * n, device=DEV).view(n, 2)
    for k in range(steps, 0, -1):
        t = torch.full((n, 1), k / steps, device=x.device)
        x = x - net(torch.cat([x, t], 1)) / steps
    return x

denoiser = Silu2d(16).to(DEV)
ema = WeightAverage(denoiser)
for _ in range(2):
    with torch.no_grad():
        [p.mul_(1.01) for p in denoiser.parameters()]      # "training"
    ema.update()

# %%
with torch.no_grad(), ema.swapped_in() as net:
    samples = sample(net, 5)
