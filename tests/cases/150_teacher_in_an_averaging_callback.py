# id = "150"
# cause = "ema_shadow"
# also_causes = ["model_not_moved"]
# culprit = "self.avg_model"
# also_culprit = ["avg.avg_model", "a", "avg", "cb", "learn.cbs[0].avg_model", "self.cbs", "cb.avg_model"]
# culprit_cell = 1
# origin_cell = 3
# also_cells = [2, 4]
# origin = "avg = WeightAveraging(mlp)"
# culprit_device = "HOST"
# other_device = "DEV"
# fail_cell = 4
# fix_site = "class of the notebook"
# visible = "raising frame"
# expect_after_fix = "next(avg.avg_model.parameters()).device == torch.device(DEV) and next(mlp.parameters()).device == torch.device(DEV)"
# [[ref_fix]]
# op = "replace"
# cell = 3
# old = "mlp = nn.Sequential(nn.Linear(2, 3), nn.Linear(3, 1))"
# new = "mlp = nn.Sequential(nn.Linear(2, 3), nn.Linear(3, 1)).to(DEV)"
# [rerun]
# cells = [3, 4]

# %%
import torch, torch.nn as nn
from copy import deepcopy

class Callback:
    def on_fit_start(self, trainer): ...
    def on_batch_end(self, trainer): ...

class WeightAveraging(Callback):
    def __init__(self, model, beta=0.9):
        self.avg_model, self.beta = deepcopy(model), beta
    def on_batch_end(self, trainer):
        with torch.no_grad():
            for a, p in zip(self.avg_model.parameters(), trainer.model.parameters()):
                a.mul_(self.beta).add_(p, alpha=1 - self.beta)

# %%
class Learner:
    def __init__(self, model, cbs=()):
        self.model, self.cbs = model, list(cbs)
    def __call__(self, event):
        for cb in self.cbs: getattr(cb, event)(self)
    def fit(self, xs, device):
        self.model.to(device)
        self("on_fit_start")
        for x in xs:
            self.pred = self.model(x.to(device))
            self("on_batch_end")

# %%
mlp = nn.Sequential(nn.Linear(2, 3), nn.Linear(3, 1))
avg = WeightAveraging(mlp)
learn = Learner(mlp, cbs=[avg])

# %%
learn.fit([torch.randn(4, 2)], DEV)
