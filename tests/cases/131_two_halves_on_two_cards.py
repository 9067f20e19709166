# id = "131"
# cause = "model_split_multi_gpu"
# also_causes = ["input_not_moved"]
# culprit = "h"
# also_culprit = ["self.front(x)"]
# culprit_cell = 1
# origin_cell = 1
# also_cells = []
# origin = "h = self.front(x)"
# culprit_device = "DEV"
# other_device = "DEV2"
# fail_cell = 3
# fix_site = "forward"
# visible = "first user frame"
# expect_after_fix = "out.device == torch.device(DEV2)"
# needs = "DEV2"
# [[ref_fix]]
# op = "replace"
# cell = 1
# old = "return self.back(h)"
# new = "return self.back(h.to(next(self.back.parameters()).device))"
# [rerun]
# cells = [1, 2, 3]

# %%
import torch
import torch.nn as nn

class PipelineMLP(nn.Module):
    """first half on one card, second half on the other"""
    def __init__(self, d0, d1):
        super().__init__()
        self.front = nn.Sequential(nn.Linear(8, 16), nn.ReLU()).to(d0)
        self.back = nn.Sequential(nn.Linear(16, 16), nn.ReLU(), nn.Linear(16, 2)).to(d1)

    def forward(self, x):
        h = self.front(x)
        return self.back(h)

# %%
pipe = PipelineMLP(DEV, DEV2)
print({n: p.device for n, p in pipe.named_parameters()})

# %%
out = pipe(torch.randn(4, 8, device=DEV))
