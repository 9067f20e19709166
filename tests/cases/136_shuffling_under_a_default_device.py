# id = "136"
# cause = "default_device_global"
# also_causes = ["generator_device"]
# culprit = "loader"
# also_culprit = ["loader.sampler", "generator", "torch.Generator()", "loader.generator"]
# culprit_cell = 3
# origin_cell = 2
# also_cells = [1]
# origin = "loader = DataLoader(TensorDataset(xs, ys), batch_size=8, shuffle=True)"
# culprit_device = "HOST"
# other_device = "DEV"
# fail_cell = 3
# fix_site = "earlier cell"
# visible = "not in any frame"
# expect_after_fix = "grad.device == torch.device(DEV)"
# # the sampler makes its own host generator; randperm follows the default device
# numbers = false   # the order of the batches comes from another generator
# [[ref_fix]]
# op = "replace"
# cell = 2
# old = "shuffle=True)"
# new = "shuffle=True, generator=torch.Generator(device=DEV))"
# [rerun]
# cells = [2, 3]

# %%
import torch
from torch.utils.data import DataLoader, TensorDataset

torch.set_default_device(DEV)

# %%
xs = torch.linspace(0, 1, 24).unsqueeze(1)
ys = 3 * xs + 1
loader = DataLoader(TensorDataset(xs, ys), batch_size=8, shuffle=True)
lin = torch.nn.Linear(1, 1)

# %%
for x, y in loader:
    loss = (lin(x) - y).pow(2).mean()
    loss.backward()
grad = lin.weight.grad
