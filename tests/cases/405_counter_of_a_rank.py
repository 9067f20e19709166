# id = "405"
# cause = "ddp_wrong_device"
# also_causes = ["hardcoded_device", "fresh_tensor_no_device", "metric_state"]
# culprit = "self.seen"
# also_culprit = ["trainer.seen"]
# culprit_cell = 2
# origin_cell = 2
# also_cells = [3, 4]
# origin = '''self.seen = torch.zeros(1, device=DEV)   # the current card'''
# culprit_device = "DEV"
# other_device = "DEV2"
# fail_cell = 4
# fix_site = "earlier cell"
# visible = "user frame"
# expect_after_fix = "trainer.seen.device == torch.device(DEV2)"
# [[ref_fix]]
# op = "replace"
# cell = 2
# old = '''torch.zeros(1, device=DEV)'''
# new = '''torch.zeros(1, device=self.device)'''
# [rerun]
# cells = [2, 3, 4]

# %%
import os
import torch
from torch import nn
os.environ.update(RANK="3", WORLD_SIZE="4", LOCAL_RANK="1")

class Env:
    rank = int(os.environ["RANK"])
    local_rank = int(os.environ["LOCAL_RANK"])
    device = torch.device(DEV2)

# %%
class Trainer:
    def __init__(self, net):
        self.device = Env.device
        self.net = net.to(self.device)
        self.seen = torch.zeros(1, device=DEV)   # the current card

    def step(self, x):
        out = self.net(x.to(self.device))
        self.seen += out.detach().abs().sum()
        return out

# %%
trainer = Trainer(nn.Linear(8, 4))

# %%
out = trainer.step(torch.randn(4, 8))
