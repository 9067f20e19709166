# id = "182"
# cause = "meta_not_materialized"
# also_causes = []
# culprit = "net.rope.inv_freq"
# also_culprit = ["self.inv_freq", "net.rope", "self.rope", "self.rope(n)", "self.rope(n).sin()", "net", "self.rope.inv_freq"]
# culprit_cell = 1
# origin_cell = 2
# also_cells = [3]
# origin = "net = Net()"
# culprit_device = "meta"
# other_device = "DEV"
# fail_cell = 3
# fix_site = "model load"
# visible = "only in an object attribute"
# expect_after_fix = "waves.device == torch.device(DEV) and torch.allclose(net.rope.inv_freq.cpu(), torch.tensor([1.0, 0.1]))"
# numbers = false   # on the host the notebook stops as well (meta), so a repair has no reference; the expectation asks for the right values
# [[ref_fix]]
# op = "replace"
# cell = 2
# old = "report = net"
# new = "net.rope = Rope(4).to(DEV)\nreport = net"
# [rerun]
# cells = [2, 3]

# %%
import torch
from torch import nn

class Rope(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.register_buffer("inv_freq", 1.0 / 100 ** (torch.arange(0, dim, 2).float() / dim), persistent=False)
    def forward(self, n):
        return torch.outer(torch.arange(n, device=self.inv_freq.device).float(), self.inv_freq)

class Net(nn.Module):
    def __init__(self, dim=4):
        super().__init__()
        self.rope, self.lin = Rope(dim), nn.Linear(dim // 2, 3)
    def forward(self, n):
        return self.lin(self.rope(n).sin())

disk = Net().state_dict()

# %%
with torch.device("meta"):
    net = Net()
report = net.load_state_dict(disk, assign=True)
print(report)              # all keys matched ... but inv_freq is no key

# %%
net.lin.to(DEV)
waves = net(5)
