# id = "192"
# cause = "fresh_tensor_no_device"
# also_causes = ["input_not_moved"]
# culprit = "a"
# also_culprit = ["torch.ones(3, 2)"]
# culprit_cell = 3
# origin_cell = 3
# also_cells = [2]
# origin = "a = torch.ones(3, 2); b = g(a); c = b.sum(); print(c.item())"
# culprit_device = "HOST"
# other_device = "DEV"
# fail_cell = 3
# fix_site = "cell line that failed"
# visible = "first user frame"
# expect_after_fix = "c.device == torch.device(DEV)"
# [[ref_fix]]
# op = "replace"
# cell = 3
# old = "torch.ones(3, 2)"
# new = "torch.ones(3, 2, device=DEV)"

# %%
import torch; from torch import nn; f = nn.Linear(2, 2).to(DEV)
# %%
g = lambda *a, **k: f(*a, **k)
# %%
a = torch.ones(3, 2); b = g(a); c = b.sum(); print(c.item())
