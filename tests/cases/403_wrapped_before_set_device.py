# id = "403"
# cause = "ddp_wrong_device"
# also_causes = ["model_not_moved", "hardcoded_device"]
# culprit = "ddp"
# also_culprit = ["net", "ddp.module"]
# culprit_cell = 4
# origin_cell = 2
# also_cells = [2, 3]
# origin = '''net = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4)).to("cuda" if torch.cuda.is_available() else "cpu")'''
# culprit_device = "DEV"
# other_device = "DEV2"
# fail_cell = 4
# fix_site = "earlier cell"
# visible = "user frame"
# expect_after_fix = "out.device == torch.device(DEV2)"
# [[ref_fix]]
# op = "replace"
# cell = 2
# old = '''.to("cuda" if torch.cuda.is_available() else "cpu")'''
# new = '''.to(DEV2)'''
# [rerun]
# cells = [2, 3, 4]

# %%
import os
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
os.environ.update(RANK="0", WORLD_SIZE="1", LOCAL_RANK="1")
local_rank = int(os.environ["LOCAL_RANK"])
if not dist.is_initialized():
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)

# %%
net = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4)).to("cuda" if torch.cuda.is_available() else "cpu")

# %%
ddp = DDP(net, device_ids=[local_rank] if next(net.parameters()).is_cuda else None, process_group=dist.new_group([0]))

# %%
x = torch.randn(4, 8)
out = ddp(x.to(DEV2))
