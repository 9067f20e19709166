# id = "143"
# cause = "loss_weight"
# also_causes = ["closure_constant", "input_not_moved", "fresh_tensor_no_device"]
# culprit = "pw"
# also_culprit = ["bce", "LOSSES[name]", "LOSSES['bce']", "bce.keywords['pos_weight']", "LOSSES[name].keywords['pos_weight']"]
# culprit_cell = 2
# origin_cell = 1
# also_cells = []
# origin = "pw = torch.tensor([4.0, 1.0, 0.5])"
# culprit_device = "HOST"
# other_device = "DEV"
# fail_cell = 4
# fix_site = "earlier cell"
# visible = "only in an object attribute"
# expect_after_fix = "b.device == torch.device(DEV)"
# [[ref_fix]]
# op = "replace"
# cell = 1
# old = "torch.tensor([4.0, 1.0, 0.5])"
# new = "torch.tensor([4.0, 1.0, 0.5], device=DEV)"
# [rerun]
# cells = [1, 2, 4]

# %%
from functools import partial
import torch
import torch.nn.functional as F

pw = torch.tensor([4.0, 1.0, 0.5])
bce = partial(F.binary_cross_entropy_with_logits, pos_weight=pw, reduction="mean")

# %%
LOSSES = {"bce": bce, "mse": F.mse_loss}
tagger = torch.nn.Linear(5, 3).to(DEV)

def compute(name, x, y):
    return LOSSES[name](tagger(x), y)

# %%
x, y = torch.randn(4, 5, device=DEV), torch.ones(4, 3, device=DEV)
m = compute("mse", x, y)

# %%
b = compute("bce", x, y)
