# id = "402"
# cause = "hardcoded_device"
# also_causes = []
# culprit = "feats"
# also_culprit = ["timefeat.fourier(stamps)", "w"]
# culprit_cell = 4
# origin_cell = 2
# also_cells = [3]
# origin = "w = 2 * math.pi / torch.tensor(periods, device=pick_device())"
# culprit_device = "DEV"
# other_device = "DEV2"
# fail_cell = 5
# fix_site = "a file of the user"
# visible = "raising frame"
# expect_after_fix = "load.device == torch.device(DEV2) and load.shape == (2, 12)"
# # needs DEV = 'cuda:0'
# needs = "DEV2"
# [[ref_fix]]
# op = "replace"
# cell = 2
# old = "w = 2 * math.pi / torch.tensor(periods, device=pick_device())"
# new = "w = 2 * math.pi / torch.tensor(periods, device=stamps.device)"
# [rerun]
# cells = [2, 3, 5]

# %%
import sys
sys.path.insert(0, ".")

# %%
%%writefile timefeat.py
import math
import torch

def pick_device():
    return torch.device("cuda:0") if torch.cuda.is_available() else torch.device("cpu")

def fourier(stamps, periods=(24.0, 168.0)):
    """hours since the epoch -> (..., 2 * len(periods)) smooth features"""
    w = 2 * math.pi / torch.tensor(periods, device=pick_device())
    angle = torch.stack([stamps.to(w.device) * f for f in w], dim=-1)
    return torch.cat([angle.sin(), angle.cos()], dim=-1)

# %%
import importlib
import torch
import timefeat
importlib.reload(timefeat)          # pick up edits without a new kernel
print(timefeat.fourier(torch.arange(3.0)).shape)

# %%
class LoadForecaster(torch.nn.Module):
    def __init__(self, n_series):
        super().__init__()
        self.level = torch.nn.Embedding(n_series, 3)
        self.out = torch.nn.Sequential(torch.nn.Linear(3 + 4, 8), torch.nn.SiLU(), torch.nn.Linear(8, 1))

    def forward(self, series, stamps):
        level = self.level(series).unsqueeze(1).expand(-1, stamps.shape[1], -1)
        feats = timefeat.fourier(stamps)
        return self.out(torch.cat([level, feats], dim=-1)).squeeze(-1)

# %%
forecaster = LoadForecaster(5).to(DEV2)      # the first card is taken today
series = torch.tensor([1, 4]).to(DEV2)
stamps = torch.arange(24.0).view(2, 12).to(DEV2)
with torch.no_grad():
    load = forecaster(series, stamps)
