# id = "155"
# cause = "nested_batch_partly_moved"
# also_causes = ["input_not_moved"]
# culprit = "batch[\"features\"][\"numeric\"]"
# also_culprit = ["batch['features']", "raw['features']['numeric']", "batch", "raw"]
# culprit_cell = 2
# origin_cell = 1
# also_cells = [3, 4]
# origin = "return {k: v.to(device) if isinstance(v, torch.Tensor) else v for k, v in batch.items()}"
# culprit_device = "HOST"
# other_device = "DEV"
# fail_cell = 4
# fix_site = "a function in an earlier cell"
# visible = "raising frame"
# expect_after_fix = "scores.device == torch.device(DEV)"
# [[ref_fix]]
# op = "replace"
# cell = 1
# old = "v.to(device) if isinstance(v, torch.Tensor) else v for"
# new = "v.to(device) if isinstance(v, torch.Tensor) else move_to(v, device) if isinstance(v, dict) else v for"
# [rerun]
# cells = [1, 4]

# %%
import torch
from torch import nn

def move_to(batch, device):
    """dict of tensors -> dict of tensors on device"""
    return {k: v.to(device) if isinstance(v, torch.Tensor) else v for k, v in batch.items()}

# %%
class TwoTower(nn.Module):
    def __init__(self):
        super().__init__()
        self.user, self.item = nn.Embedding(10, 4), nn.Embedding(20, 4)
        self.dense = nn.Linear(3, 4)
    def forward(self, batch):
        u = self.user(batch["user"]) + self.dense(batch["features"]["numeric"])
        return (u * self.item(batch["item"])).sum(-1)

# %%
model = TwoTower().to(DEV)
raw = {
    "user": torch.tensor([1, 2]), "item": torch.tensor([3, 4]),
    "features": {"numeric": torch.rand(2, 3), "names": ["a", "b"]},
}

# %%
batch = move_to(raw, DEV)
scores = model(batch)
