# id = "225"
# cause = "generator_device"
# also_causes = ["must_be_cpu"]
# culprit = "streams('split')"
# also_culprit = ["streams.made['split']", "generator", "streams.made", "torch.Generator(device=self.device)", "streams"]
# culprit_cell = 3
# origin_cell = 1
# also_cells = [1, 2]
# origin = "g = torch.Generator(device=self.device)"
# culprit_device = "DEV"
# other_device = "HOST"
# fail_cell = 3
# fix_site = "the line that failed"
# visible = "library frame"
# expect_after_fix = "len(train) == 9 and len(valid) == 3 and head.weight.device == torch.device(DEV)"
# # random_split draws on the host; the streams for the layers are right where they are
# [[ref_fix]]
# op = "replace"
# cell = 3
# old = "generator=streams('split')"
# new = "generator=torch.Generator().manual_seed(0)"
# [rerun]
# cells = [3]

# %%
import zlib
import torch
from torch import nn
from torch.utils.data import random_split, Dataset

class Streams:
    """one independent random stream per purpose -> reproducible ablations"""
    def __init__(self, device, base=0):
        self.device, self.base, self.made = device, base, {}

    def __call__(self, purpose):
        if purpose not in self.made:
            g = torch.Generator(device=self.device)
            g.manual_seed(self.base + zlib.crc32(purpose.encode()))
            self.made[purpose] = g
        return self.made[purpose]

streams = Streams(DEV, base=42)

# %%
head = nn.Linear(4, 2).to(DEV)
nn.init.normal_(head.weight, std=0.02, generator=streams('init'))
nn.init.zeros_(head.bias)

class Curves(Dataset):
    def __init__(self, n): self.n = n
    def __len__(self): return self.n
    def __getitem__(self, i):
        return torch.arange(4.) * i, i % 2

# %%
def holdout(ds, frac):
    n_valid = int(len(ds) * frac)
    return random_split(ds, [len(ds) - n_valid, n_valid], generator=streams('split'))

train, valid = holdout(Curves(12), .25)
print(sorted(valid.indices))

# %%
with torch.no_grad():
    val_out = torch.stack([head(x.to(DEV)) for x, _ in valid])
