# id = "170"
# cause = "closure_constant"
# also_causes = ["fresh_tensor_no_device", "input_not_moved"]
# culprit = "v"
# also_culprit = ["direction"]
# culprit_cell = 2
# origin_cell = 1
# also_cells = []
# origin = "direction = nn.functional.normalize(torch.randn(6), dim=0)"
# culprit_device = "HOST"
# other_device = "DEV"
# fail_cell = 3
# fix_site = "earlier cell"
# visible = "raising frame"
# expect_after_fix = "steered.device == torch.device(DEV)"
# # the failed cell has removed the hook: cell 2 has to run again
# [[ref_fix]]
# op = "replace"
# cell = 1
# old = "torch.randn(6), dim=0)"
# new = "torch.randn(6), dim=0).to(DEV)"
# [rerun]
# cells = [1, 2, 3]

# %%
import torch
from torch import nn

net = nn.Sequential()
net.add_module("fc1", nn.Linear(4, 6)); net.add_module("act", nn.ReLU()); net.add_module("fc2", nn.Linear(6, 2))
direction = nn.functional.normalize(torch.randn(6), dim=0)

# %%
def steering(scale, v=direction):
    return lambda mod, args, out: out + scale * v

net.to(DEV)
handle = net.act.register_forward_hook(steering(3.0))

# %%
try:
    steered = net(torch.ones(2, 4, device=DEV))
finally:
    handle.remove()
