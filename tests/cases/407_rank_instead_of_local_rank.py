# id = "407"
# cause = "ddp_wrong_device"
# also_causes = ["loss_weight", "hardcoded_device"]
# culprit = "self.criterion.weight"
# also_culprit = ["self.criterion", "worker.criterion"]
# culprit_cell = 2
# origin_cell = 2
# also_cells = [3, 4]
# origin = '''self.criterion = nn.CrossEntropyLoss(weight=torch.ones(4), label_smoothing=0.1).to(cards[self.rank])'''
# culprit_device = "DEV"
# other_device = "DEV2"
# fail_cell = 4
# fix_site = "earlier cell"
# visible = "user frame"
# expect_after_fix = "loss.device == torch.device(DEV2)"
# [[ref_fix]]
# op = "replace"
# cell = 2
# old = '''.to(cards[self.rank])'''
# new = '''.to(self.card)'''
# [rerun]
# cells = [2, 3, 4]

# %%
import os
import torch
from torch import nn
os.environ.update(RANK="0", WORLD_SIZE="4", LOCAL_RANK="1")   # ranks are dealt out in turns over the machines
cards = [DEV, DEV2]

# %%
class Worker:
    def __init__(self):
        self.rank = int(os.environ["RANK"])
        self.card = torch.device(cards[int(os.environ["LOCAL_RANK"])])
        self.criterion = nn.CrossEntropyLoss(weight=torch.ones(4), label_smoothing=0.1).to(cards[self.rank])

    def loss(self, net, x, y):
        return self.criterion(net(x.to(self.card)), y.to(self.card))

# %%
worker = Worker()
net = nn.Linear(8, 4).to(worker.card)

# %%
loss = worker.loss(net, torch.randn(4, 8), torch.tensor([0, 1, 2, 3]))
