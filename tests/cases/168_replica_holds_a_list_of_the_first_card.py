# id = "168"
# cause = "dp_replica_state"
# also_causes = ["plain_tensor_attribute"]
# culprit = "self.anchors"
# also_culprit = ["a", "mix.anchors", "mix.anchors[0]", "self.anchors[0]", "dp.module.anchors", "dp.module.anchors[0]"]
# culprit_cell = 1
# origin_cell = 1
# also_cells = [2, 3]
# origin = "self.anchors = [torch.randn(d) for _ in range(k)]"
# culprit_device = "DEV"
# other_device = "DEV2"
# fail_cell = 3
# fix_site = "class __init__"
# visible = "only in an object attribute"
# expect_after_fix = "dist.device == torch.device(DEV) and dist.shape == (6, 3)"
# needs = "DEV2"
# [[ref_fix]]
# op = "replace"
# cell = 1
# old = "self.anchors = [torch.randn(d) for _ in range(k)]"
# new = "self.register_buffer('table', torch.stack([torch.randn(d) for _ in range(k)]))"
# [[ref_fix]]
# op = "replace"
# cell = 1
# old = "self.anchors = [fn(a) for a in self.anchors]     # so that .to() reaches them"
# new = "pass"
# [[ref_fix]]
# op = "replace"
# cell = 1
# old = "for a in self.anchors], dim=-1)"
# new = "for a in self.table], dim=-1)"
# [rerun]
# cells = [1, 2, 3]

# %%
import torch
from torch import nn

class Mixture(nn.Module):
    def __init__(self, d=4, k=3):
        super().__init__()
        self.lin = nn.Linear(d, d)
        self.anchors = [torch.randn(d) for _ in range(k)]

    def _apply(self, fn):
        super()._apply(fn)
        self.anchors = [fn(a) for a in self.anchors]     # so that .to() reaches them
        return self

    def forward(self, x):
        h = self.lin(x)
        return torch.stack([(h - a).pow(2).sum(-1) for a in self.anchors], dim=-1)

# %%
mix = Mixture().to(DEV)
single = mix(torch.rand(2, 4, device=DEV))

# %%
dp = nn.DataParallel(mix, device_ids=[torch.device(DEV), torch.device(DEV2)]) if DEV != DEV2 else mix
dist = dp(torch.rand(6, 4, device=DEV))
