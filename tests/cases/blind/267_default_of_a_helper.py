# id = "267"
# cause = "hardcoded_device"
# also_causes = ["fresh_tensor_no_device"]
# culprit = "mean"
# also_culprit = ["std"]
# culprit_cell = 3
# origin_cell = 2
# also_cells = [4]
# origin = "def as_tensor(a, dtype=torch.float32, device='cpu'):"
# culprit_device = "HOST"
# other_device = "DEV"
# fail_cell = 5
# fix_site = "a user function of an earlier cell (its default argument)"
# visible = "raising frame"
# expect_after_fix = "pred.device == torch.device(DEV) and pred.shape == (3, 2)"
# [[ref_fix]]
# op = "replace"
# cell = 3
# old = "as_tensor(self.spec[k]) for k in ('mean', 'std')"
# new = "as_tensor(self.spec[k], device=x.device) for k in ('mean', 'std')"
# [rerun]
# cells = [3, 4, 5]

# %%
import numpy as np
import torch
from torch import nn

# %%
def as_tensor(a, dtype=torch.float32, device='cpu'):
    """numpy / list / tensor -> tensor"""
    if isinstance(a, torch.Tensor):
        return a.to(dtype=dtype)
    return torch.tensor(np.asarray(a), dtype=dtype, device=device)

def summarize(frame):
    cols = sorted(frame)
    raw = np.stack([frame[c] for c in cols], 1)
    return {'cols': cols, 'mean': raw.mean(0), 'std': raw.std(0) + 1e-8}

# %%
class Standardize(nn.Module):
    def __init__(self, spec):
        super().__init__()
        self.spec = spec

    def forward(self, x):
        mean, std = (as_tensor(self.spec[k]) for k in ('mean', 'std'))
        return (x - mean) / std

# %%
rng = np.random.default_rng(3)
frame = {'age': rng.integers(18, 80, 9), 'fare': rng.gamma(2., 20., 9), 'sibsp': rng.integers(0, 3, 9)}
spec = summarize(frame)
titanic = nn.Sequential(Standardize(spec), nn.Linear(3, 2)).to(DEV)

# %%
rows = torch.tensor([[30., 12., 0.], [51., 80., 1.], [22., 7., 1.]])
with torch.no_grad():
    pred = titanic(rows.to(DEV)).softmax(-1)
