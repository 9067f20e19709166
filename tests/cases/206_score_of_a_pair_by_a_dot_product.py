# id = "206"
# cause = "input_not_moved"
# also_causes = ["fresh_tensor_no_device"]
# culprit = "profile"
# also_culprit = ["users[name]", "users['bob']", "users"]
# culprit_cell = 2
# origin_cell = 1
# also_cells = [3]
# origin = "users = {\"ann\": torch.ones(4), \"bob\": torch.tensor([1., 0., 1., 0.])}"
# culprit_device = "HOST"
# other_device = "DEV"
# fail_cell = 3
# fix_site = "a function in an earlier cell"
# visible = "raising frame"
# expect_after_fix = "best.device == torch.device(DEV)"
# [[ref_fix]]
# op = "replace"
# cell = 2
# old = "profile = users[name]"
# new = "profile = users[name].to(items.weight.device)"
# [rerun]
# cells = [2, 3]

# %%
import torch; from torch import nn
items = nn.Embedding(7, 4).to(DEV)
users = {"ann": torch.ones(4), "bob": torch.tensor([1., 0., 1., 0.])}

# %%
def recommend(name, k=2):
    profile = users[name]
    table = items.weight.detach()
    sims = torch.stack([torch.dot(row, profile) / row.norm() for row in table])
    return sims.topk(k)

# %%
%config InlineBackend.figure_format = "svg"
top = recommend("bob")
best = top.values
