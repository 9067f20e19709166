# id = "213"
# cause = "dp_replica_state"
# also_causes = []
# culprit = "self.gate"
# also_culprit = ["self._apply_gate", "self.scale", "model.gate", "model.scale", "trainer.model.gate"]
# culprit_cell = 2
# origin_cell = 2
# also_cells = []
# origin = "self.head.register_forward_pre_hook(self._apply_gate)"
# culprit_device = "DEV"
# other_device = "DEV2"
# fail_cell = 5
# fix_site = "class __init__"
# visible = "in no frame (worker thread of DataParallel, replica 1)"
# expect_after_fix = "model.gate.grad is not None and all(p.grad.device == torch.device(DEV) for p in model.parameters()) and len(trainer.losses) == 2"
# needs = "DEV2"
# # the hook is a bound method of the original: in replica 1 it still reads the gate of the first card
# [[ref_fix]]
# op = "replace"
# cell = 2
# old = "        self.head.register_forward_pre_hook(self._apply_gate)\n"
# new = ""
# [[ref_fix]]
# op = "replace"
# cell = 2
# old = "return self.head(torch.relu(self.body(x)))"
# new = "return self.head(*self._apply_gate(self.head, (torch.relu(self.body(x)),)))"
# [rerun]
# cells = [2, 3, 4, 5]

# %%
import torch
from torch import nn, optim
from dataclasses import dataclass

@dataclass
class HParams:
    n_features: int = 10
    hidden: int = 12
    lr: float = 0.05
    epochs: int = 2

hp = HParams()

# %%
class GatedClassifier(nn.Module):
    """learned feature gate in front of the head (ablation B of the paper)"""
    def __init__(self, hp):
        super().__init__()
        self.body = nn.Linear(hp.n_features, hp.hidden)
        self.head = nn.Linear(hp.hidden, 3)
        self.gate = nn.Parameter(torch.zeros(hp.hidden))
        self.head.register_forward_pre_hook(self._apply_gate)

    def _apply_gate(self, module, args):
        (z,) = args
        return (z * torch.sigmoid(self.gate),)

    def forward(self, x):
        return self.head(torch.relu(self.body(x)))

# %%
class Trainer:
    def __init__(self, model, hp, parallel):
        self.model = nn.DataParallel(model) if parallel else model
        self.opt = optim.SGD(model.parameters(), lr=hp.lr)
        self.crit = nn.CrossEntropyLoss()
        self.hp, self.losses = hp, []

    def fit(self, x, y):
        for _ in range(self.hp.epochs):
            self.opt.zero_grad()
            loss = self.crit(self.model(x), y)
            loss.backward()
            self.opt.step()
            self.losses.append(loss.item())
        return self

# %%
X = torch.randn(16, hp.n_features, device=DEV)
Y = (X[:, 0] > 0).long()
model = GatedClassifier(hp).to(DEV)
trainer = Trainer(model, hp, parallel=DEV != HOST)

# %%
trainer.fit(X, Y)
