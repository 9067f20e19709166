# id = "346"
# cause = "model_not_moved"
# also_causes = []
# culprit = "model"
# also_culprit = ["make_model()", "trainer.model", "self.model"]
# culprit_cell = 4
# origin_cell = 4
# also_cells = [2, 3]
# origin = "model = make_model()          # fresh weights for this fold"
# culprit_device = "HOST"
# other_device = "DEV"
# fail_cell = 5
# fix_site = "a function in an earlier cell"
# visible = "only in an object attribute"
# expect_after_fix = "len(fold_scores) == 3 and all(next(m.parameters()).device == torch.device(DEV) for m in fold_models)"
# [[ref_fix]]
# op = "replace"
# cell = 4
# old = "model = make_model() "
# new = "model = make_model().to(DEV) "
# [rerun]
# cells = [4, 5]

# %%
import numpy as np, torch
from torch import nn

X = torch.rand(30, 6)
y = (X.sum(1, keepdim=True) > 3).float()

# %%
def make_model(hidden=8):
    return nn.Sequential(nn.Linear(6, hidden), nn.ReLU(), nn.Linear(hidden, 1))

# check that everything fits, once
model = make_model()
model.to(DEV)
print(model(X[:2].to(DEV)).shape)

# %%
class FoldTrainer:
    def __init__(self, model, lr=0.1):
        self.model = model
        self.opt = torch.optim.SGD(model.parameters(), lr=lr)
        self.bce = nn.BCEWithLogitsLoss()

    def epoch(self, x, t):
        self.opt.zero_grad()
        loss = self.bce(self.model(x), t)
        loss.backward()
        self.opt.step()
        return loss.item()

    @torch.no_grad()
    def accuracy(self, x, t):
        return ((self.model(x) > 0).float() == t).float().mean().item()

# %%
def kfold(n, k, seed=42):
    perm = np.random.RandomState(seed).permutation(n)
    for part in np.array_split(perm, k):
        yield np.setdiff1d(perm, part), part

def run_fold(tr, va):
    model = make_model()          # fresh weights for this fold
    trainer = FoldTrainer(model)
    for _ in range(2):
        trainer.epoch(X[tr].to(DEV), y[tr].to(DEV))
    return model, trainer.accuracy(X[va].to(DEV), y[va].to(DEV))

# %%
fold_models, fold_scores = [], []
for k, (tr, va) in enumerate(kfold(len(X), 3)):
    m, score = run_fold(tr, va)
    fold_models.append(m); fold_scores.append(score)
