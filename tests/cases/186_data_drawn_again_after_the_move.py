# id = "186"
# cause = "input_not_moved"
# also_causes = ["fresh_tensor_no_device"]
# culprit = "X"
# also_culprit = []
# culprit_cell = 3
# origin_cell = 4
# also_cells = [5]
# origin = "X = torch.randn(16, 4)"
# culprit_device = "HOST"
# other_device = "DEV"
# fail_cell = 5
# fix_site = "earlier cell"
# visible = "first user frame"
# expect_after_fix = "again.device == torch.device(DEV)"
# [[ref_fix]]
# op = "replace"
# cell = 4
# old = "X = torch.randn(16, 4)"
# new = "X = torch.randn(16, 4).to(DEV)"
# [rerun]
# cells = [4, 5]

# %%
import torch
from torch import nn
X = torch.randn(16, 4); w_true = torch.tensor([1., -2., 3., 0.])
y = X @ w_true

# %%
X, y = X.to(DEV), y.to(DEV)
model = nn.Linear(4, 1).to(DEV)

# %%
def mse(): return ((model(X).squeeze(1) - y) ** 2).mean()
first = mse().item()

# %%
# once more, with outliers
X = torch.randn(16, 4)
X[::5] *= 10

# %%
again = mse()
