# id = "190"
# cause = "model_split_multi_gpu"
# also_causes = ["index_device"]
# culprit = "ids[mine] - k * self.per"
# also_culprit = ["ids", "ids[mine]"]
# culprit_cell = 1
# origin_cell = 3
# also_cells = [2]
# origin = "ids = torch.tensor([0, 5, 2, 7], device=DEV)"
# culprit_device = "DEV"
# other_device = "DEV2"
# fail_cell = 3
# fix_site = "class of the notebook"
# visible = "raising frame"
# expect_after_fix = "y.device == torch.device(DEV)"
# needs = "DEV2"
# [[ref_fix]]
# op = "replace"
# cell = 1
# old = "shard[ids[mine] - k * self.per]"
# new = "shard[(ids[mine] - k * self.per).to(shard.device)]"
# [rerun]
# cells = [1, 2, 3]

# %%
import torch
from torch import nn

class ShardedTable:
    def __init__(self, n, d, devices):
        self.per = n // len(devices)
        self.shards = [torch.randn(self.per, d).to(dev) for dev in devices]
    def lookup(self, ids):
        out = ids.new_zeros(len(ids), self.shards[0].shape[1], dtype=torch.float32)
        for k, shard in enumerate(self.shards):
            mine = (ids // self.per) == k
            rows = shard[ids[mine] - k * self.per]
            out[mine] = rows.to(out.device)
        return out

# %%
table = ShardedTable(8, 3, [DEV, DEV2])
head = nn.Linear(3, 1).to(DEV)

# %%
ids = torch.tensor([0, 5, 2, 7], device=DEV)
y = head(table.lookup(ids))
