# id = "349"
# cause = "optimizer_state"
# also_causes = []
# culprit = "self.optimizer"
# also_culprit = ["learner.optimizer", "optimizer", "learner.optimizer.state", "self.optimizer.state", "learner.optimizer.state[next(learner.model.parameters())]['sum']", "learner.optimizer.state[next(learner.model.parameters())]", "optimizer.state"]
# culprit_cell = 3
# origin_cell = 3
# also_cells = [4]
# origin = "self.optimizer = OPTIMIZERS[cfg.optim](model.parameters(), lr=cfg.lr)"
# culprit_device = "HOST"
# other_device = "DEV"
# fail_cell = 5
# fix_site = "class __init__"
# visible = "only in an object attribute"
# expect_after_fix = "all(s['sum'].device == torch.device(DEV) for s in learner.optimizer.state.values()) and len(learner.losses) == 2 and table.device == torch.device(DEV)"
# # Adagrad makes its 'sum' when it is built, not at the first step; the failed step() has counted 'step' up, so the clean way is to build it anew
# [[ref_fix]]
# op = "replace"
# cell = 3
# old = "        self.optimizer = OPTIMIZERS[cfg.optim](model.parameters(), lr=cfg.lr)\n"
# new = ""
# [[ref_fix]]
# op = "replace"
# cell = 3
# old = "        self.model = model.to(cfg.device)\n"
# new = "        self.model = model.to(cfg.device)\n        self.optimizer = OPTIMIZERS[cfg.optim](self.model.parameters(), lr=cfg.lr)\n"
# [rerun]
# cells = [3, 4, 5]

# %%
import torch
from torch import nn
from dataclasses import dataclass

# %%
OPTIMIZERS = {'sgd': torch.optim.SGD, 'adagrad': torch.optim.Adagrad, 'adam': torch.optim.Adam}

@dataclass
class Config:
    optim: str = 'adam'
    lr: float = 0.05
    device: str = 'cpu'

# %%
class Learner:
    def __init__(self, model, cfg):
        self.cfg = cfg
        self.optimizer = OPTIMIZERS[cfg.optim](model.parameters(), lr=cfg.lr)
        self.model = model.to(cfg.device)
        self.losses = []

    def run(self, batches):
        for users, items, ratings in batches:
            users, items, ratings = (t.to(self.cfg.device) for t in (users, items, ratings))
            loss = nn.functional.mse_loss(self.model(users, items), ratings)
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            self.losses.append(loss.item())

class MF(nn.Module):
    def __init__(self, n_users, n_items, k=4):
        super().__init__()
        self.u, self.i = nn.Embedding(n_users, k), nn.Embedding(n_items, k)
    def forward(self, users, items):
        return (self.u(users) * self.i(items)).sum(-1)

# %%
# adam was fine, the paper says adagrad
learner = Learner(MF(10, 12), Config(optim='adagrad', device=DEV))

# %%
ratings = [(torch.randint(0, 10, (8,)), torch.randint(0, 12, (8,)), torch.rand(8)) for _ in range(2)]
learner.run(ratings)
table = learner.model.i.weight.detach()
