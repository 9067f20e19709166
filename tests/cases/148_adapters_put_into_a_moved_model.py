# id = "148"
# cause = "module_added_after_move"
# also_causes = ["model_not_moved", "fresh_tensor_no_device"]
# culprit = "self.A"
# also_culprit = ["peft_model[1].q_proj.A", "self.q_proj", "peft_model[1].q_proj", "self.B", "base[1].q_proj.A"]
# culprit_cell = 1
# origin_cell = 3
# also_cells = [2, 4]
# origin = "peft_model = inject(base)"
# culprit_device = "HOST"
# other_device = "DEV"
# fail_cell = 4
# fix_site = "earlier cell"
# visible = "only in an object attribute"
# expect_after_fix = "score.device == torch.device(DEV)"
# [[ref_fix]]
# op = "replace"
# cell = 3
# old = "peft_model = inject(base)"
# new = "peft_model = inject(base).to(DEV)"
# [rerun]
# cells = [3, 4]

# %%
import math
import torch
from torch import nn

class LoRALinear(nn.Module):
    def __init__(self, base: nn.Linear, r: int = 2, alpha: float = 4.0):
        super().__init__()
        self.base = base.requires_grad_(False)
        self.A = nn.Parameter(torch.randn(base.in_features, r) / math.sqrt(r))
        self.B = nn.Parameter(torch.zeros(r, base.out_features))
        self.scale = alpha / r
    def forward(self, x):
        return self.base(x) + (x @ self.A @ self.B) * self.scale

# %%
def inject(module, r=2, targets=("q_proj", "v_proj")):
    for name, child in list(module.named_children()):
        if isinstance(child, nn.Linear) and name in targets:
            setattr(module, name, LoRALinear(child, r))
        else:
            inject(child, r, targets)
    return module

class SelfAttn(nn.Module):
    def __init__(self, d=6):
        super().__init__()
        self.q_proj, self.k_proj, self.v_proj = nn.Linear(d, d), nn.Linear(d, d), nn.Linear(d, d)
    def forward(self, x):
        w = self.q_proj(x) @ self.k_proj(x).mT
        return w.softmax(-1) @ self.v_proj(x)

# %%
base = nn.Sequential(nn.Linear(4, 6), SelfAttn(), nn.Linear(6, 1)).to(DEV)
peft_model = inject(base)
trainable = [p for p in peft_model.parameters() if p.requires_grad]

# %%
score = peft_model(torch.randn(2, 3, 4, device=DEV)).mean()
