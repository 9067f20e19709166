# id = "102"
# cause = "input_not_moved"
# also_causes = []
# culprit = "x"
# also_culprit = ["batch", "batch[0]", "val_dl"]
# culprit_cell = 2
# origin_cell = 4
# also_cells = [3, 6]
# origin = "X = torch.randn(40, 6)"
# culprit_device = "HOST"
# other_device = "DEV"
# fail_cell = 6
# fix_site = "a function in an earlier cell"
# visible = "first user frame"
# expect_after_fix = "val_loss.device == torch.device(DEV)"
# # only cells 2 and 4 to 6 are run again: lit has to be rebuilt, its class changed
# [[ref_fix]]
# op = "replace"
# cell = 2
# old = "        x, y = batch\n"
# new = "        x, y = (t.to(self.device) for t in batch)\n"
# [rerun]
# cells = [2, 4, 5, 6]

# %%
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

# %%
class LitRegressor(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(6, 16), nn.SiLU(), nn.Linear(16, 1))

    @property
    def device(self):
        return next(self.parameters()).device

    def training_step(self, batch, batch_idx):
        x, y = (t.to(self.device) for t in batch)
        return F.mse_loss(self.net(x), y)

    def validation_step(self, batch, batch_idx):
        x, y = batch
        return F.l1_loss(self.net(x), y)

# %%
class MiniTrainer:
    def __init__(self, max_epochs, device):
        self.max_epochs, self.device = max_epochs, device
    def fit(self, module, train_dl):
        module.to(self.device)
        opt = torch.optim.AdamW(module.parameters(), lr=1e-2)
        for _ in range(self.max_epochs):
            for i, batch in enumerate(train_dl):
                loss = module.training_step(batch, i)
                opt.zero_grad(); loss.backward(); opt.step()
    def validate(self, module, val_dl):
        module.eval()
        with torch.no_grad():
            losses = [module.validation_step(batch, i) for i, batch in enumerate(val_dl)]
        return torch.stack(losses).mean()

# %%
X = torch.randn(40, 6); Y = X.sum(1, keepdim=True)
train_dl = DataLoader(TensorDataset(X[:32], Y[:32]), batch_size=8)
val_dl = DataLoader(TensorDataset(X[32:], Y[32:]), batch_size=4)
lit, trainer = LitRegressor(), MiniTrainer(2, DEV)

# %%
trainer.fit(lit, train_dl)

# %%
val_loss = trainer.validate(lit, val_dl)
