# id = "263"
# cause = "optimizer_state"
# also_causes = []
# culprit = "self.optimizer.state"
# also_culprit = ["self.optimizer.state[self.model.item.weight]['sum']", "self.optimizer", "trainer.optimizer", "trainer.optimizer.state", "trainer.optimizer.state[trainer.model.user.weight]['sum']", "self.optimizer.state[self.model.user.weight]['sum']"]
# culprit_cell = 3
# origin_cell = 3
# also_cells = [4, 5]
# origin = "self.optimizer = optimizer_cls(model.parameters(), **optim_kwargs)"
# culprit_device = "HOST"
# other_device = "DEV"
# fail_cell = 5
# fix_site = "an earlier cell"
# visible = "only in an object attribute (state of the optimizer)"
# expect_after_fix = "all(s['sum'].device == torch.device(DEV) for s in trainer.optimizer.state.values())"
# [[ref_fix]]
# op = "replace"
# cell = 3
# old = "        self.optimizer = optimizer_cls("
# new = "        model.to(device)\n        self.optimizer = optimizer_cls("
# [rerun]
# cells = [3, 4, 5]

# %%
import torch
from torch import nn
from torch.utils.data import TensorDataset, DataLoader

# %%
class MatrixFactorization(nn.Module):
    def __init__(self, users, items, k=4):
        super().__init__()
        self.user = nn.Embedding(users, k)
        self.item = nn.Embedding(items, k)
    def forward(self, u, i):
        return (self.user(u) * self.item(i)).sum(-1)

# %%
class Trainer:
    """poor man's lightning"""
    def __init__(self, model, optimizer_cls, device, **optim_kwargs):
        self.model, self.device = model, device
        self.optimizer = optimizer_cls(model.parameters(), **optim_kwargs)
        self.history = []

    def on_fit_start(self):
        self.model.to(self.device)

    def training_step(self, batch):
        u, i, r = (b.to(self.device) for b in batch)
        return nn.functional.mse_loss(self.model(u, i), r)

    def fit(self, loader, epochs=1):
        self.on_fit_start()
        for _ in range(epochs):
            for batch in loader:
                self.optimizer.zero_grad()
                loss = self.training_step(batch)
                loss.backward()
                self.optimizer.step()
                self.history.append(loss.item())

# %%
# adagrad works best for sparse ratings
ratings = TensorDataset(torch.arange(12) % 4, torch.arange(12) % 5, torch.linspace(1, 5, 12))
loader = DataLoader(ratings, batch_size=6)
trainer = Trainer(MatrixFactorization(4, 5), torch.optim.Adagrad, DEV, lr=0.1, initial_accumulator_value=0.1)

# %%
trainer.fit(loader, epochs=2)
print(trainer.history[-1])
