# id = "370"
# cause = "no_accelerator"
# also_causes = []
# culprit = ""
# also_culprit = []
# culprit_cell = 2
# origin_cell = 2
# also_cells = [4, 5]
# origin = "device: str = 'mps'          # M2 Pro"
# culprit_device = "none"
# other_device = "none"
# fail_cell = 5
# fix_site = "earlier cell"
# visible = "not in any frame"
# expect_after_fix = "len(trainer.history) == 2 and next(trainer.model.parameters()).device == torch.device(DEV) and weights.device == torch.device(DEV)"
# [[ref_fix]]
# op = "replace"
# cell = 2
# old = "device: str = 'mps' "
# new = "device: str = DEV "
# [rerun]
# cells = [2, 3, 4, 5]

# %%
import torch
from torch import nn
from dataclasses import dataclass, field

# %%
@dataclass
class TrainingArgs:
    epochs: int = 2
    lr: float = 1e-2
    device: str = 'mps'          # M2 Pro
    tags: list = field(default_factory=lambda: ['baseline'])

# %%
class Trainer:
    def __init__(self, model, args):
        self.model, self.args = model, args
        self.history = []
        self.ready = False

    def setup(self):
        self.model = self.model.to(self.args.device)
        self.opt = torch.optim.SGD(self.model.parameters(), lr=self.args.lr)
        self.ready = True

    def fit(self, x, y):
        if not self.ready:
            self.setup()
        x, y = x.to(self.args.device), y.to(self.args.device)
        for _ in range(self.args.epochs):
            loss = nn.functional.cross_entropy(self.model(x), y)
            self.opt.zero_grad(); loss.backward(); self.opt.step()
            self.history.append(loss.item())
        return self

# %%
x, y = torch.rand(16, 4), torch.randint(0, 3, (16,))
args = TrainingArgs(tags=['iris', 'seminar'])
trainer = Trainer(nn.Linear(4, 3), args)

# %%
trainer.fit(x, y)
weights = trainer.model.weight.detach()
