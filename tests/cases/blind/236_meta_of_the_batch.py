# id = "236"
# cause = "nested_batch_partly_moved"
# also_causes = ["input_not_moved"]
# culprit = "batch['meta']['valid']"
# also_culprit = ["meta['valid']", "batch['meta']", "meta", "moved(batch, DEV)", "batch"]
# culprit_cell = 3
# origin_cell = 2
# also_cells = [2, 4]
# origin = "return {k: v.to(device) if torch.is_tensor(v) else v for k, v in batch.items()}"
# culprit_device = "HOST"
# other_device = "DEV"
# fail_cell = 4
# fix_site = "earlier cell"
# visible = "raising frame"
# expect_after_fix = "len(losses) == 2 and all(l.device == torch.device(DEV) for l in losses)"
# [[ref_fix]]
# op = "replace"
# cell = 2
# old = "    return {k: v.to(device) if torch.is_tensor(v) else v for k, v in batch.items()}"
# new = "    return {k: moved(v, device) if isinstance(v, dict) else v.to(device) if torch.is_tensor(v) else v\n            for k, v in batch.items()}"
# [rerun]
# cells = [2, 4]

# %%
import torch
from torch import nn
from torch.utils.data import Dataset, DataLoader

class Sensors(Dataset):
    """10 minutes of 3 sensors; `meta` says which readings can be trusted"""
    def __len__(self):
        return 6
    def __getitem__(self, i):
        t = torch.arange(8.) + i
        x = torch.stack([t.sin(), t.cos(), t / 10])
        meta = {'station': i, 'valid': (torch.arange(8) != i).float(), 'source': 'roof'}
        return {'x': x, 'y': t.roll(1).sin(), 'meta': meta}

# %%
def moved(batch, device):
    return {k: v.to(device) if torch.is_tensor(v) else v for k, v in batch.items()}

# %%
class Regressor(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Conv1d(3, 6, 3, padding=1), nn.Tanh(), nn.Conv1d(6, 1, 1))

    def forward(self, batch):
        return self.net(batch['x']).squeeze(1)

    def loss(self, batch):
        meta = batch['meta']
        err = (self(batch) - batch['y']) ** 2
        return (err * meta['valid']).sum() / meta['valid'].sum()

model = Regressor().to(DEV)
loader = DataLoader(Sensors(), batch_size=3)

# %%
losses = []
for batch in loader:
    batch = moved(batch, DEV)
    losses.append(model.loss(batch).detach())
