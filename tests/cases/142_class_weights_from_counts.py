# id = "142"
# cause = "loss_weight"
# also_causes = []
# culprit = "self.criterion.weight"
# also_culprit = ["self.criterion", "criterion", "criterion.weight", "t.criterion", "class_weights"]
# culprit_cell = 3
# origin_cell = 2
# also_cells = [4]
# origin = "criterion = nn.CrossEntropyLoss(weight=class_weights)"
# culprit_device = "HOST"
# other_device = "DEV"
# fail_cell = 4
# fix_site = "earlier cell"
# visible = "only in an object attribute"
# expect_after_fix = "avg.device == torch.device(DEV)"
# [[ref_fix]]
# op = "run"
# code = "criterion.to(DEV)"

# %%
import numpy as np
import torch
from torch import nn

labels = np.array([0, 0, 0, 1, 0, 2, 0, 0, 1, 0])

# %%
def balanced(labels):
    counts = np.bincount(labels)
    return torch.tensor(len(labels) / (len(counts) * counts), dtype=torch.float32)

class_weights = balanced(labels)
criterion = nn.CrossEntropyLoss(weight=class_weights)

# %%
class Trainer:
    def __init__(self, model, criterion, device):
        self.model, self.criterion, self.device = model.to(device), criterion, device
        self.opt = torch.optim.SGD(self.model.parameters(), lr=0.1, momentum=0.9)
    def epoch(self, batches):
        total = 0.0
        for x, y in batches:
            x, y = x.to(self.device), y.to(self.device)
            self.opt.zero_grad()
            loss = self.criterion(self.model(x), y)
            loss.backward()
            self.opt.step()
            total = total + loss.detach()
        return total / len(batches)

# %%
X, Y = torch.randn(10, 6), torch.from_numpy(labels)
t = Trainer(nn.Linear(6, 3), criterion, DEV)
avg = t.epoch([(X[:5], Y[:5]), (X[5:], Y[5:])])
