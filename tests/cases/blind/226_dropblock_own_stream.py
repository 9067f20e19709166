# id = "226"
# cause = "generator_device"
# also_causes = []
# culprit = "self.rng"
# also_culprit = ["net[1].rng", "net.drop.rng", "rng", "next(streams)"]
# culprit_cell = 2
# origin_cell = 1
# also_cells = [3, 4]
# origin = "yield torch.Generator().manual_seed(state)"
# culprit_device = "HOST"
# other_device = "DEV"
# fail_cell = 5
# fix_site = "earlier cell"
# visible = "only in an object attribute"
# expect_after_fix = "len(passes) == 3 and spread.device == torch.device(DEV) and spread.shape == (2, 4)"
# # MC dropout: the stream may be made on the card, or the mask drawn on the host and moved
# [[ref_fix]]
# op = "replace"
# cell = 2
# old = "keep = torch.empty(x.shape[-1], device=x.device, dtype=x.dtype)"
# new = "keep = torch.empty(x.shape[-1], device=self.rng.device, dtype=x.dtype)"
# [[ref_fix]]
# op = "replace"
# cell = 2
# old = "return keep.bernoulli_(1 - self.p, generator=self.rng)"
# new = "return keep.bernoulli_(1 - self.p, generator=self.rng).to(x.device)"
# [rerun]
# cells = [2, 3, 4, 5]

# %%
import torch
from torch import nn

def substreams(seed):
    """endless, independent generators (LCG on the seeds)"""
    state = seed
    while True:
        state = (1664525 * state + 1013904223) % 2**32
        yield torch.Generator().manual_seed(state)

# %%
class DropFeature(nn.Module):
    """drops whole channels; stays on at test time"""
    def __init__(self, p, rng):
        super().__init__()
        self.p, self.rng = p, rng

    def extra_repr(self):
        return f'p={self.p}'

    def mask(self, x):
        keep = torch.empty(x.shape[-1], device=x.device, dtype=x.dtype)
        return keep.bernoulli_(1 - self.p, generator=self.rng)

    def forward(self, x):
        return x * self.mask(x) / (1 - self.p)

# %%
streams = substreams(2024)
net = nn.Sequential()
net.add_module('inp', nn.Linear(6, 8))
net.add_module('drop', DropFeature(.5, next(streams)))
net.add_module('act', nn.ReLU())
net.add_module('out', nn.Linear(8, 4))
net.to(DEV)

# %%
@torch.no_grad()
def mc_passes(net, x, n):
    for _ in range(n):
        yield net(x)

# %%
probe = torch.ones(2, 6, device=DEV)
passes = list(mc_passes(net, probe, 3))
spread = torch.stack(passes).std(0)
