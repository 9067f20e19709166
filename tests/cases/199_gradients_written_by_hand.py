# id = "199"
# cause = "input_not_moved"
# also_causes = ["library_returns_cpu", "fresh_tensor_no_device", "hardcoded_device"]
# culprit = "g"
# also_culprit = ["g.view_as(p)", "total", "total.split([p.numel() for p in params])"]
# culprit_cell = 3
# origin_cell = 1
# also_cells = []
# origin = "flat = torch.cat([p.detach().flatten().cpu() for p in params])"
# culprit_device = "HOST"
# other_device = "DEV"
# fail_cell = 3
# fix_site = "cell line that failed"
# visible = "first user frame"
# expect_after_fix = "w.device == torch.device(DEV)"
# [[ref_fix]]
# op = "replace"
# cell = 3
# old = "g.view_as(p)"
# new = "g.view_as(p).to(p.device)"

# %%
import torch
from torch import nn

def zeroth_order(f, params, sigma=1e-2, n=2):
    """gradient of f by random directions"""
    flat = torch.cat([p.detach().flatten().cpu() for p in params])
    total = torch.zeros_like(flat)
    for _ in range(n):
        u = torch.randn(flat.shape)
        total += u * sigma
    return total.split([p.numel() for p in params])

# %%
probe = nn.Linear(3, 2, bias=False).to(DEV)
sgd = torch.optim.SGD(probe.parameters(), lr=.1)

# %%
for p, g in zip(probe.parameters(), zeroth_order(None, list(probe.parameters()))):
    p.grad = g.view_as(p)
sgd.step()
w = probe.weight.detach()
