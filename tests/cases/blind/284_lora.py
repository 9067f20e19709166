# id = "284"
# cause = "module_added_after_move"
# also_causes = []
# culprit = "self.a"
# also_culprit = ["self.b", "self", "llm.blocks[0].up.a", "llm.blocks[0].up", "llm.blocks[0].up.b"]
# culprit_cell = 3
# origin_cell = 5
# also_cells = [2, 4, 6]
# origin = "n = inject(llm, match='up', rank=2)"
# culprit_device = "HOST"
# other_device = "DEV"
# fail_cell = 6
# fix_site = "an earlier cell"
# visible = "only in an object attribute (parameters of a wrapper)"
# expect_after_fix = "adapted.device == torch.device(DEV) and llm.blocks[0].up.a.device == torch.device(DEV)"
# [[ref_fix]]
# op = "run"
# code = "llm.to(DEV)"

# %%
# LoRA from scratch
import torch
import torch.nn as nn

# %%
class MLPBlock(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.up, self.down = nn.Linear(d, 2 * d), nn.Linear(2 * d, d)
    def forward(self, x):
        return x + self.down(self.up(x).relu())

class Stack(nn.Module):
    def __init__(self, d, depth):
        super().__init__()
        self.blocks = nn.ModuleList([MLPBlock(d) for _ in range(depth)])
    def forward(self, x):
        for b in self.blocks:
            x = b(x)
        return x

# %%
class LoRA(nn.Module):
    def __init__(self, base, rank, alpha=4.0):
        super().__init__()
        self.base = base.requires_grad_(False)
        self.a = nn.Parameter(torch.randn(rank, base.in_features) / rank)
        self.b = nn.Parameter(torch.zeros(base.out_features, rank))
        self.gain = alpha / rank

    def forward(self, x):
        low = torch.einsum("...i,ri,or->...o", x, self.a, self.b)
        return self.base(x) + self.gain * low

# %%
def inject(model, match, rank):
    hits = [(parent, name, child) for parent in model.modules()
            for name, child in parent.named_children()
            if isinstance(child, nn.Linear) and name == match]
    for parent, name, child in hits:
        setattr(parent, name, LoRA(child, rank))
    return len(hits)

# %%
llm = Stack(d=4, depth=2).to(DEV)
n = inject(llm, match='up', rank=2)
print(n, "layers adapted")

# %%
adapted = llm(torch.randn(1, 3, 4, device=DEV))
