# id = "389"
# cause = "nested_batch_partly_moved"
# also_causes = ["input_not_moved"]
# culprit = "batch.negatives"
# also_culprit = ["batch", "ids"]
# culprit_cell = 4
# origin_cell = 2
# also_cells = [3]
# origin = "return replace(self, users=self.users.to(device), items=self.items.to(device))"
# culprit_device = "HOST"
# other_device = "DEV"
# fail_cell = 5
# fix_site = "class of the notebook (move method)"
# visible = "first user frame"
# expect_after_fix = "bpr.device == torch.device(DEV) and all(p.grad is not None for p in mf.parameters())"
# [[ref_fix]]
# op = "replace"
# cell = 2
# old = "items=self.items.to(device))"
# new = "items=self.items.to(device), negatives=self.negatives.to(device))"
# [rerun]
# cells = [2, 3, 4, 5]

# %%
import torch
from torch import nn
from torch.utils.data import DataLoader
from dataclasses import dataclass, replace

N_USERS, N_ITEMS = 12, 30

# %%
@dataclass(frozen=True)
class Interactions:
    users: torch.Tensor
    items: torch.Tensor
    negatives: torch.Tensor = None      # filled by the collate function, new since March

    def to(self, device):
        return replace(self, users=self.users.to(device), items=self.items.to(device))

    def __len__(self):
        return len(self.users)

# %%
def make_collate(n_negatives):
    def collate(pairs):
        u, i = torch.tensor(pairs).unbind(1)
        return Interactions(u, i, torch.randint(N_ITEMS, (len(pairs), n_negatives)))
    return collate

clicks = [(u, (7 * u + k) % N_ITEMS) for u in range(N_USERS) for k in range(3)]
dl = DataLoader(clicks, batch_size=9, collate_fn=make_collate(4))

# %%
class MF(nn.Module):
    def __init__(self, dim=8):
        super().__init__()
        self.user = nn.Embedding(N_USERS, dim)
        self.item = nn.Embedding(N_ITEMS, dim)

    def score(self, users, ids):
        return (self.user(users).unsqueeze(1) * self.item(ids)).sum(-1)

def bpr_loss(model, batch):
    pos = model.score(batch.users, batch.items.unsqueeze(1))
    neg = model.score(batch.users, batch.negatives)
    return -nn.functional.logsigmoid(pos - neg).mean()

mf = MF().to(DEV)

# %%
for batch in dl:
    bpr = bpr_loss(mf, batch.to(DEV))
    mf.zero_grad()
    bpr.backward()
