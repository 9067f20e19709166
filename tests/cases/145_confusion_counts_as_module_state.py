# id = "145"
# cause = "metric_state"
# also_causes = ["model_not_moved"]
# culprit = "val_acc.mat"
# also_culprit = ["self.mat", "val_acc"]
# culprit_cell = 3
# origin_cell = 2
# also_cells = [1]
# origin = "val_acc = ConfusionMatrix(K)"
# culprit_device = "HOST"
# other_device = "DEV"
# fail_cell = 4
# fix_site = "earlier cell"
# visible = "only in an object attribute"
# expect_after_fix = "acc.device == torch.device(DEV) and val_acc.mat.sum() == 8"
# [[ref_fix]]
# op = "replace"
# cell = 2
# old = "val_acc = ConfusionMatrix(K)"
# new = "val_acc = ConfusionMatrix(K).to(DEV)"
# [rerun]
# cells = [2, 4]

# %%
import torch
from torch import nn

class Metric(nn.Module):
    """what metric libraries do: state as buffers, update(), compute()"""
    def add_state(self, name, default):
        self.register_buffer(name, default)

class ConfusionMatrix(Metric):
    def __init__(self, k):
        super().__init__()
        self.k = k
        self.add_state("mat", torch.zeros(k, k))
    def update(self, preds, target):
        flat = torch.bincount(target * self.k + preds, minlength=self.k ** 2)
        self.mat += flat.view(self.k, self.k)
    def compute(self):
        return self.mat.diag().sum() / self.mat.sum()

# %%
K = 3
classifier = nn.Linear(5, K).to(DEV)
val_acc = ConfusionMatrix(K)

# %%
def validate(loader):
    classifier.eval()
    with torch.no_grad():
        for xb, yb in loader:
            out = classifier(xb.to(DEV))
            val_acc.update(out.argmax(dim=1), yb.to(DEV))
    return val_acc.compute()

# %%
acc = validate([(torch.randn(8, 5), torch.randint(K, (8,)))])
