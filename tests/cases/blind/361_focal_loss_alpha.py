# id = "361"
# cause = "loss_weight"
# also_causes = ["plain_tensor_attribute"]
# culprit = "self.alpha"
# also_culprit = ["criterion.alpha", "criterion"]
# culprit_cell = 3
# origin_cell = 3
# also_cells = [4]
# origin = "self.alpha = torch.as_tensor(alpha, dtype=torch.float32) if alpha is not None else None"
# culprit_device = "HOST"
# other_device = "DEV"
# fail_cell = 5
# fix_site = "class __init__"
# visible = "only in an object attribute"
# expect_after_fix = "running.device == torch.device(DEV) and bool(running > 0)"
# [[ref_fix]]
# op = "replace"
# cell = 3
# old = "self.alpha = torch.as_tensor(alpha, dtype=torch.float32) if alpha is not None else None"
# new = "self.register_buffer('alpha', torch.as_tensor(alpha, dtype=torch.float32) if alpha is not None else None)"
# [rerun]
# cells = [3, 4, 5]

# %%
import torch
from torch import nn
import torch.nn.functional as F

# %%
labels = torch.tensor([0] * 14 + [1] * 4 + [2] * 2)       # lesions are rare
freq = torch.bincount(labels).float() / len(labels)
cfg = {'lr': 0.05, 'loss': {'name': 'focal', 'gamma': 2.0, 'alpha': ((1 / freq) / (1 / freq).sum()).tolist()}}

# %%
class FocalLoss(nn.Module):
    """FL(p_t) = -alpha_t (1 - p_t)^gamma log(p_t)"""
    def __init__(self, gamma=2.0, alpha=None, reduction='mean'):
        super().__init__()
        self.gamma, self.reduction = gamma, reduction
        self.alpha = torch.as_tensor(alpha, dtype=torch.float32) if alpha is not None else None

    def forward(self, logits, target):
        logpt = F.log_softmax(logits, dim=1).gather(1, target[:, None]).squeeze(1)
        loss = -(1 - logpt.exp()) ** self.gamma * logpt
        if self.alpha is not None:
            loss = loss * self.alpha.gather(0, target)
        return getattr(loss, self.reduction)()

LOSSES = {'focal': FocalLoss, 'ce': nn.CrossEntropyLoss}

def build_loss(name, **kw):
    return LOSSES[name](**kw)

# %%
skin = nn.Sequential(nn.Flatten(), nn.Linear(12, 3)).to(DEV)
criterion = build_loss(**cfg['loss']).to(DEV)
optimizer = torch.optim.SGD(skin.parameters(), lr=cfg['lr'])

# %%
running = torch.zeros((), device=DEV)
for x, y in zip(torch.rand(20, 3, 2, 2).split(10), labels.split(10)):
    x, y = x.to(DEV), y.to(DEV)
    optimizer.zero_grad()
    loss = criterion(skin(x), y)
    loss.backward()
    optimizer.step()
    running += loss.detach()
