# id = "173"
# cause = "to_result_discarded"
# also_causes = ["input_not_moved"]
# culprit = "a"
# also_culprit = ["x1", "x2", "b"]
# culprit_cell = 3
# origin_cell = 1
# also_cells = [2, 4]
# origin = "x1, x2, mask = torch.randn(3, 4), torch.randn(3, 4), torch.tensor([1., 0., 1.])"
# culprit_device = "HOST"
# other_device = "DEV"
# fail_cell = 4
# fix_site = "earlier cell"
# visible = "first user frame"
# expect_after_fix = "c.device == torch.device(DEV)"
# [[ref_fix]]
# op = "replace"
# cell = 2
# old = "for t in (x1, x2, mask):\n    t = t.to(DEV)"
# new = "x1, x2, mask = (t.to(DEV) for t in (x1, x2, mask))"
# [rerun]
# cells = [2, 4]

# %%
import torch
x1, x2, mask = torch.randn(3, 4), torch.randn(3, 4), torch.tensor([1., 0., 1.])

# %%
siamese = torch.nn.Linear(4, 4).to(DEV)
for t in (x1, x2, mask):
    t = t.to(DEV)
print("moved", 3, "tensors ✓")

# %%
def contrastive(a, b, w, margin=1.0):
    d = (siamese(a) - siamese(b)).norm(dim=1)
    return (w * d ** 2 + (1 - w) * (margin - d).clamp(min=0) ** 2).mean()

# %%
c = contrastive(x1, x2, mask)
