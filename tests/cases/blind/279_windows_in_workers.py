# id = "279"
# cause = "cuda_in_dataset"
# also_causes = []
# culprit = "self.series"
# also_culprit = ["ds.series", "ds", "loader.dataset", "loader.dataset.series"]
# culprit_cell = 2
# origin_cell = 2
# also_cells = [3, 4]
# origin = "self.series = torch.as_tensor(series, dtype=torch.float32).to(device)"
# culprit_device = "DEV"
# other_device = "HOST"
# fail_cell = 4
# fix_site = "dataset / collate"
# visible = "in no frame (another process)"
# expect_after_fix = "len(errors) == 4 and forecaster.weight.device == torch.device(DEV)"
# [[ref_fix]]
# op = "replace"
# cell = 3
# old = "num_workers=2"
# new = "num_workers=0"
# [rerun]
# cells = [3, 4]

# %%
import numpy as np
import torch
from torch import nn
from torch.utils.data import Dataset, DataLoader

# %%
class Windows(Dataset):
    """(window, next value) pairs of one series; small, so it may as well live on the card"""
    def __init__(self, series, width, device):
        self.series = torch.as_tensor(series, dtype=torch.float32).to(device)
        self.width = width

    def __len__(self):
        return len(self.series) - self.width

    def __getitem__(self, i):
        part = self.series[i:i + self.width + 1]
        part = (part - part.mean()) / (part.std() + 1e-6)
        return part[:-1], part[-1]

# %%
load = np.sin(np.arange(20) / 3) + 0.1 * np.random.default_rng(1).normal(size=20)
ds = Windows(load, width=4, device=DEV)
assert ds[0][0].shape == (4,)
loader = DataLoader(ds, batch_size=4, shuffle=False, num_workers=2)
forecaster = nn.Linear(4, 1).to(DEV)

# %%
errors = []
for window, nxt in loader:
    with torch.no_grad():
        errors.append((forecaster(window).squeeze(1) - nxt).abs().mean().item())
