# id = "388"
# cause = "ddp_wrong_device"
# also_causes = []
# culprit = "self.net"
# also_culprit = ["run.net", "run.net.module", "net"]
# culprit_cell = 3
# origin_cell = 3
# also_cells = [4, 5]
# origin = "net = build().to(self.cards[self.rank - 1])"
# culprit_device = "DEV2"
# other_device = "DEV"
# fail_cell = 5
# fix_site = "class __init__"
# visible = "only in an object attribute"
# expect_after_fix = "curve.device == torch.device(DEV) and all(p.device == torch.device(DEV) for p in run.net.parameters())"
# needs = "DEV2"
# [[ref_fix]]
# op = "replace"
# cell = 3
# old = "self.cards[self.rank - 1]"
# new = "self.cards[self.rank]"
# [rerun]
# cells = [3, 4, 5]

# %%
import os
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP

os.environ["RANK"] = "0"
if not dist.is_initialized():
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)

# %%
def build():
    return nn.Sequential(nn.Linear(6, 10), nn.GELU(), nn.Linear(10, 1))

def shard(rank, world, n=24):
    g = torch.Generator().manual_seed(5)
    xs = torch.randn(n, 6, generator=g)
    for part in xs[rank::world].split(8):
        yield {"x": part, "y": part.sum(1, keepdim=True)}

# %%
class Run:
    """one process of the job"""
    def __init__(self, cards):
        self.cards = list(cards)
        self.rank = int(os.environ.get("RANK", 0))
        net = build().to(self.cards[self.rank - 1])     # ranks counted from one?
        self.net = DDP(net, process_group=dist.new_group([self.rank]))
        self.opt = torch.optim.SGD(self.net.parameters(), lr=0.05)

    @property
    def device(self):
        return torch.device(self.cards[self.rank])

    def epoch(self):
        losses = []
        for batch in shard(self.rank, dist.get_world_size()):
            batch = {k: v.to(self.device) for k, v in batch.items()}
            loss = nn.functional.mse_loss(self.net(batch["x"]), batch["y"])
            self.opt.zero_grad()
            loss.backward()
            self.opt.step()
            losses.append(loss.detach())
        return torch.stack(losses)

# %%
run = Run([DEV, DEV2])

# %%
curve = run.epoch()
print(curve)
