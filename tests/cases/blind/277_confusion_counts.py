# id = "277"
# cause = "to_numpy"
# also_causes = []
# culprit = "pred"
# also_culprit = []
# culprit_cell = 2
# origin_cell = 4
# also_cells = [4, 5]
# origin = "yield yb, logits.argmax(1)"
# culprit_device = "DEV"
# other_device = "HOST"
# fail_cell = 5
# fix_site = "a user function in the traceback"
# visible = "first user frame"
# expect_after_fix = "cm.sum() == 9"
# [[ref_fix]]
# op = "replace"
# cell = 2
# old = "np.add.at(self.table, (truth, pred), 1)"
# new = "np.add.at(self.table, (truth.cpu(), pred.cpu()), 1)"
# [rerun]
# cells = [2, 5]

# %%
import numpy as np
import torch
from torch import nn

# %%
class Confusion:
    def __init__(self, names):
        self.names = list(names)
        self.table = np.zeros((len(self.names),) * 2, dtype=int)

    def update(self, truth, pred):
        np.add.at(self.table, (truth, pred), 1)
        return self

    def recall(self):
        return dict(zip(self.names, self.table.diagonal() / self.table.sum(1).clip(min=1)))

# %%
species = ["setosa", "versicolor", "virginica"]
net = nn.Sequential(nn.Linear(4, 8), nn.ELU(), nn.Linear(8, 3)).to(DEV)
batches = [(torch.rand(3, 4), torch.tensor([0, 1, 2])) for _ in range(3)]

# %%
def predictions(net, batches, device):
    net.eval()
    with torch.inference_mode():
        for xb, yb in batches:
            logits = net(xb.to(device))
            yield yb, logits.argmax(1)

# %%
report = Confusion(species)
for yb, pred in predictions(net, batches, DEV):
    report.update(yb, pred)
cm = report.table
report.recall()
