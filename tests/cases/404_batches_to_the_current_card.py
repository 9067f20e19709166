# id = "404"
# cause = "ddp_wrong_device"
# also_causes = ["hardcoded_device", "input_not_moved"]
# culprit = "x"
# also_culprit = []
# culprit_cell = 3
# origin_cell = 3
# also_cells = [4]
# origin = '''return [t.to(where, non_blocking=True) for t in tensors]'''
# culprit_device = "DEV"
# other_device = "DEV2"
# fail_cell = 4
# fix_site = "earlier cell"
# visible = "user frame"
# expect_after_fix = "loss.device == torch.device(DEV2)"
# [[ref_fix]]
# op = "replace"
# cell = 3
# old = '''where = "cuda" if torch.cuda.is_available() else "cpu"'''
# new = '''where = card'''
# [rerun]
# cells = [3, 4]

# %%
import os
import torch
from torch import nn
import torch.nn.functional as F
os.environ.update(RANK="1", WORLD_SIZE="2", LOCAL_RANK="1")
local_rank = int(os.environ.get("LOCAL_RANK", 0))
card = DEV2

# %%
net = nn.Linear(8, 4).to(card)

# %%
def put(*tensors):
    where = "cuda" if torch.cuda.is_available() else "cpu"
    return [t.to(where, non_blocking=True) for t in tensors]

def step(x, y):
    x, y = put(x, y)
    return F.cross_entropy(net(x), y)

# %%
loss = step(torch.randn(4, 8), torch.tensor([0, 1, 2, 3]))
