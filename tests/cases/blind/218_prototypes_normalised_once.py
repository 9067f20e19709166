# id = "218"
# cause = "derived_tensor_in_init"
# also_causes = ["plain_tensor_attribute"]
# culprit = "self.unit"
# also_culprit = ["head.unit", "model.head.unit", "self.prototypes / self.prototypes.norm(dim=1, keepdim=True)"]
# culprit_cell = 2
# origin_cell = 2
# also_cells = [3]
# origin = "self.unit = self.prototypes / self.prototypes.norm(dim=1, keepdim=True)"
# culprit_device = "HOST"
# other_device = "DEV"
# fail_cell = 5
# fix_site = "class __init__"
# visible = "only in an object attribute"
# expect_after_fix = "all(l.device == torch.device(DEV) for l in logits)"
# [[ref_fix]]
# op = "replace"
# cell = 2
# old = "self.scale * z @ self.unit.t()"
# new = "self.scale * z @ F.normalize(self.prototypes, dim=1).t()"
# [rerun]
# cells = [2, 3, 4, 5]

# %%
from __future__ import annotations
import torch
import torch.nn as nn
import torch.nn.functional as F

HEADS: dict[str, type] = {}

def register(name):
    def deco(cls):
        HEADS[name] = cls
        return cls
    return deco

# %%
@register('linear')
class LinearHead(nn.Linear):
    pass

@register('cosine')
class CosineHead(nn.Module):
    """logits = s * <z, p> with unit prototypes (few-shot protocol)"""
    def __init__(self, dim: int, n_way: int, scale: float = 10.):
        super().__init__()
        self.scale = scale
        self.prototypes = nn.Parameter(torch.randn(n_way, dim))
        self.unit = self.prototypes / self.prototypes.norm(dim=1, keepdim=True)

    def forward(self, z):
        z = F.normalize(z, dim=-1)
        return self.scale * z @ self.unit.t()

# %%
class FewShot(nn.Module):
    def __init__(self, head, dim=6, n_way=5):
        super().__init__()
        self.encoder = nn.Sequential(nn.Flatten(), nn.Linear(9, dim))
        self.head = HEADS[head](dim, n_way)
    def forward(self, x):
        return self.head(self.encoder(x))

# %%
def build(spec):
    return FewShot(**spec).eval().to(DEV)

model = build({'head': 'cosine', 'n_way': 3})

# %%
def episodes(k):
    for i in range(k):
        yield torch.arange(18., device=DEV).view(2, 3, 3) / (i + 1)

logits = []
with torch.no_grad():
    for ep in episodes(3):
        logits.append(model(ep))
