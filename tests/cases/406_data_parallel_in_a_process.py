# id = "406"
# cause = "ddp_wrong_device"
# also_causes = ["model_not_moved", "model_split_multi_gpu"]
# culprit = "net"
# also_culprit = ["net.module"]
# culprit_cell = 3
# origin_cell = 2
# also_cells = [2]
# origin = '''net = nn.DataParallel(net)'''
# culprit_device = "DEV2"
# other_device = "DEV"
# fail_cell = 3
# fix_site = "earlier cell"
# visible = "user frame"
# expect_after_fix = "out.shape == (6, 4) and next(net.parameters()).device == torch.device(DEV2)"
# [[ref_fix]]
# op = "replace"
# cell = 2
# old = '''nn.DataParallel(net)'''
# new = '''nn.DataParallel(net, device_ids=[local_rank])'''
# [rerun]
# cells = [2, 3]

# %%
import os
import torch
from torch import nn
os.environ.update(RANK="1", WORLD_SIZE="2", LOCAL_RANK="1")
local_rank = int(os.environ["LOCAL_RANK"])
card = torch.device(DEV2)

# %%
net = nn.Linear(8, 4).to(card)
net = nn.DataParallel(net)

# %%
out = net(torch.randn(6, 8).to(card))
