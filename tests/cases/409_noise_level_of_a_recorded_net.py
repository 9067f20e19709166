# id = "409"
# cause = "traced_constant"
# also_causes = []
# culprit = "self.net"
# also_culprit = ["sampler.net", "recorded"]
# culprit_cell = 3
# origin_cell = 3
# also_cells = [4, 5]
# origin = '''recorded = torch.fx.symbolic_trace(net)'''
# culprit_device = "HOST"
# other_device = "DEV"
# fail_cell = 5
# fix_site = "earlier cell"
# visible = "not in any frame"
# expect_after_fix = "images.device == torch.device(DEV)"
# numbers = false
# # draws on the device
# [[ref_fix]]
# op = "replace"
# cell = 3
# old = '''torch.fx.symbolic_trace(net)'''
# new = '''torch.fx.symbolic_trace(net.to(DEV))'''
# [rerun]
# cells = [3, 4, 5]

# %%
import torch
import torch.fx
from torch import nn

# %%
class Denoiser(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(5, 8), nn.SiLU(), nn.Linear(8, 4))

    def forward(self, x, sigma):
        dev = next(self.parameters()).device
        sigma = sigma.to(dev).expand(x.size(0), 1)
        return self.body(torch.cat([x, sigma], dim=1))

# %%
def export(net):
    recorded = torch.fx.symbolic_trace(net)
    recorded.graph.lint()
    return recorded

class Sampler:
    def __init__(self, net, device):
        self.net = net.to(device)
        self.device = device

    def __call__(self, n):
        x = torch.randn(n, 4, device=self.device)
        for level in (0.9, 0.5, 0.1):
            x = x - self.net(x, torch.full((1, 1), level, device=self.device))
        return x

# %%
sampler = Sampler(export(Denoiser()), DEV)

# %%
images = sampler(3)
