# id = "187"
# cause = "to_result_discarded"
# also_causes = ["nested_batch_partly_moved", "input_not_moved"]
# culprit = "ns.left"
# also_culprit = ["ns.right", "sample.left", "sample.right", "ns", "sample"]
# culprit_cell = 2
# origin_cell = 1
# also_cells = [3]
# origin = "sample = NS(left=torch.rand(4, 3), right=torch.rand(4, 3))"
# culprit_device = "HOST"
# other_device = "DEV"
# fail_cell = 3
# fix_site = "a function in an earlier cell"
# visible = "first user frame"
# expect_after_fix = "s.device == torch.device(DEV)"
# [[ref_fix]]
# op = "replace"
# cell = 2
# old = "list(map(lambda t: t.to(device), vars(ns).values()))"
# new = "vars(ns).update({k: t.to(device) for k, t in vars(ns).items()})"
# [rerun]
# cells = [2, 3]

# %%
import torch
from torch import nn
from types import SimpleNamespace as NS

net = nn.Bilinear(3, 3, 1).to(DEV)
sample = NS(left=torch.rand(4, 3), right=torch.rand(4, 3))

# %%
def prepare(ns, device):
    list(map(lambda t: t.to(device), vars(ns).values()))
    return ns

def score(ns):
    return net(ns.left, ns.right).squeeze(-1)

# %%
s = score(prepare(sample, DEV))
