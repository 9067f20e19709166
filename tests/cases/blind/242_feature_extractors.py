# id = "242"
# cause = "stray_in_collection"
# also_causes = ["input_not_moved", "fresh_tensor_no_device"]
# culprit = "parts"
# also_culprit = ["parts[1]", "fn(sample)", "EXTRACTORS['calendar'](sample)", "EXTRACTORS", "calendar(sample)"]
# culprit_cell = 3
# origin_cell = 2
# also_cells = [2, 4]
# origin = "return torch.tensor(rows, dtype=torch.float32)"
# culprit_device = "HOST"
# other_device = "DEV"
# fail_cell = 4
# fix_site = "earlier cell"
# visible = "raising frame"
# expect_after_fix = "forecast.device == torch.device(DEV) and forecast.shape == (3, 1)"
# # one extractor of three builds its columns from the dates on the host
# [[ref_fix]]
# op = "replace"
# cell = 2
# old = "return torch.tensor(rows, dtype=torch.float32)"
# new = "return torch.tensor(rows, dtype=torch.float32, device=sample['load'].device)"
# [rerun]
# cells = [1, 2, 3, 4]

# %%
import math
from datetime import date, timedelta
import torch
from torch import nn

EXTRACTORS = {}

def extractor(fn):
    EXTRACTORS[fn.__name__] = fn
    return fn

# %%
@extractor
def lags(sample):
    return sample['load'][:, -3:]

@extractor
def calendar(sample):
    rows = []
    for d in sample['day']:
        phase = 2 * math.pi * d.timetuple().tm_yday / 365
        rows.append([math.sin(phase), math.cos(phase), float(d.weekday() >= 5)])
    return torch.tensor(rows, dtype=torch.float32)

@extractor
def level(sample):
    x = sample['load']
    return torch.stack([x.mean(1), x.std(1)], dim=1)

# %%
class Forecaster(nn.Module):
    def __init__(self, names, width):
        super().__init__()
        self.names = list(names)
        self.net = nn.Sequential(nn.LazyLinear(width), nn.ReLU(), nn.Linear(width, 1))

    def features(self, sample):
        parts = [fn(sample) for name, fn in EXTRACTORS.items() if name in self.names]
        return torch.cat(parts, dim=1)

    def forward(self, sample):
        return self.net(self.features(sample))

first = date(2024, 2, 1)
sample = {'load': torch.linspace(1, 3, 24).view(3, 8).to(DEV),
          'day': [first + timedelta(days=7 * i) for i in range(3)]}
model = Forecaster(EXTRACTORS, 5).to(DEV)

# %%
torch.manual_seed(5)
forecast = model(sample).detach()
