# id = "126"
# cause = "module_in_plain_container"
# also_causes = []
# culprit = "expert"
# also_culprit = ["self.experts", "moe.experts", "moe.experts[0]", "expert.w1", "self.w1"]
# culprit_cell = 2
# origin_cell = 2
# also_cells = [1, 3]
# origin = "self.experts = [Expert(d) for _ in range(n_experts)]"
# culprit_device = "HOST"
# other_device = "DEV"
# fail_cell = 4
# fix_site = "class __init__"
# visible = "only in an object attribute"
# expect_after_fix = "mixed.device == torch.device(DEV)"
# [[ref_fix]]
# op = "replace"
# cell = 2
# old = "[Expert(d) for _ in range(n_experts)]"
# new = "nn.ModuleList([Expert(d) for _ in range(n_experts)])"
# [rerun]
# cells = [2, 3, 4]

# %%
import torch
from torch import nn
import torch.nn.functional as F

class Expert(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.w1, self.w2 = nn.Linear(d, 2 * d), nn.Linear(2 * d, d)
    def forward(self, x): return self.w2(F.gelu(self.w1(x)))

# %%
class MoE(nn.Module):
    def __init__(self, d, n_experts=3, top=1):
        super().__init__()
        self.router = nn.Linear(d, n_experts)
        self.experts = [Expert(d) for _ in range(n_experts)]

    def forward(self, x):
        gate, choice = self.router(x).softmax(-1).max(-1)
        y = torch.zeros_like(x)
        for n, expert in enumerate(self.experts):
            rows = (choice == n).nonzero(as_tuple=True)[0]
            if rows.numel():
                y[rows] = gate[rows, None] * expert(x[rows])
        return y

# %%
moe = MoE(6)
moe = moe.to(DEV)
print("%d parameters" % sum(p.numel() for p in moe.parameters()))

# %%
tokens = torch.randn(10, 6, device=DEV)
mixed = moe(tokens).sum(0)
