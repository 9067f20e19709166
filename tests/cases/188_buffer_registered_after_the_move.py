# id = "188"
# cause = "module_added_after_move"
# also_causes = ["plain_tensor_attribute", "input_not_moved", "model_not_moved"]
# culprit = "self.mu"
# also_culprit = ["net.mu", "self.sd", "net.sd", "net"]
# culprit_cell = 1
# origin_cell = 3
# also_cells = [4]
# origin = "net.register_buffer(\"mu\", data.mean(0))"
# culprit_device = "HOST"
# other_device = "DEV"
# fail_cell = 4
# fix_site = "a function in an earlier cell"
# visible = "only in an object attribute"
# expect_after_fix = "z.device == torch.device(DEV)"
# [[ref_fix]]
# op = "run"
# code = "net.to(DEV)"

# %%
import torch
from torch import nn

class Normalised(nn.Module):
    def __init__(self, inner):
        super().__init__()
        self.inner = inner
    def forward(self, x):
        return self.inner((x - self.mu) / self.sd)

# %%
raw = torch.randn(50, 4) * 3 + 1
net = Normalised(nn.Linear(4, 2)).to(DEV)

# %%
def calibrate(net, data):
    net.register_buffer("mu", data.mean(0))
    net.register_buffer("sd", data.std(0))

calibrate(net, raw)

# %%
z = net(raw[:5].to(DEV))
