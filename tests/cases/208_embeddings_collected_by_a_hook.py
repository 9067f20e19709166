# id = "208"
# cause = "input_not_moved"
# also_causes = ["hardcoded_device", "library_returns_cpu"]
# culprit = "acts.relu()"
# also_culprit = ["acts", "rec.outputs", "rec.stacked()"]
# culprit_cell = 4
# origin_cell = 1
# also_cells = [3]
# origin = "self.outputs.append(output.detach().to(HOST))     # do not fill the card"
# culprit_device = "HOST"
# other_device = "DEV"
# fail_cell = 4
# fix_site = "cell line that failed"
# visible = "first user frame"
# expect_after_fix = "linear_probe.device == torch.device(DEV)"
# [[ref_fix]]
# op = "replace"
# cell = 4
# old = "rec.stacked()"
# new = "rec.stacked().to(DEV)"

# %%
import torch
from torch import nn

class Recorder:
    def __init__(self, module):
        self.outputs = []
        self.handle = module.register_forward_hook(self.save)
    def save(self, module, args, output):
        self.outputs.append(output.detach().to(HOST))     # do not fill the card
    def stacked(self):
        return torch.cat(self.outputs)

# %%
trunk = nn.Sequential(nn.Linear(4, 6), nn.ReLU()).to(DEV)
probe = nn.Linear(6, 2).to(DEV)
rec = Recorder(trunk[0])

# %%
for _ in range(2):
    trunk(torch.randn(3, 4, device=DEV))

# %%
acts = rec.stacked()
linear_probe = probe(acts.relu())
