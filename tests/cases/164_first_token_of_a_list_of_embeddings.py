# id = "164"
# cause = "stray_in_collection"
# also_causes = ["fresh_tensor_no_device", "input_not_moved"]
# culprit = "cls_token"
# also_culprit = ["tokens[0]", "tokens"]
# culprit_cell = 2
# origin_cell = 1
# also_cells = []
# origin = "cls_token = torch.zeros(1, d)"
# culprit_device = "HOST"
# other_device = "DEV"
# fail_cell = 3
# fix_site = "earlier cell"
# visible = "raising frame"
# expect_after_fix = "pooled.device == torch.device(DEV)"
# [[ref_fix]]
# op = "replace"
# cell = 1
# old = "cls_token = torch.zeros(1, d)"
# new = "cls_token = torch.zeros(1, d, device=DEV)"
# [rerun]
# cells = [1, 3]

# %%
import torch
from torch import nn
d = 5
proj = nn.Linear(3, d).to(DEV)
cls_token = torch.zeros(1, d)

# %%
def embed_patches(patches):
    """list of (n_i, 3) -> (1 + sum n_i, d)"""
    tokens = [cls_token]
    for p in patches:
        tokens.append(proj(p.to(DEV)))
    seq = torch.cat(tokens)
    return seq

# %%
seq = embed_patches([torch.rand(2, 3), torch.rand(4, 3)])
pooled = seq.mean(0)
