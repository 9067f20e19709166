# id = "160"
# cause = "generator_device"
# also_causes = []
# culprit = "g"
# also_culprit = ["rng"]
# culprit_cell = 2
# origin_cell = 1
# also_cells = [3]
# origin = "rng = torch.Generator(device=DEV).manual_seed(SEED)    # one for everything"
# culprit_device = "DEV"
# other_device = "HOST"
# fail_cell = 3
# fix_site = "earlier cell"
# visible = "raising frame"
# expect_after_fix = "len(train_set) == 9 and xs.shape == (9, 1)"
# numbers = false   # the generator of the card draws other numbers than that of the host
# [[ref_fix]]
# op = "replace"
# cell = 3
# old = "[9, 3], rng)"
# new = "[9, 3], torch.Generator().manual_seed(SEED))"

# %%
import torch
from torch.utils.data import TensorDataset, Subset, DataLoader

SEED = 7
rng = torch.Generator(device=DEV).manual_seed(SEED)    # one for everything
noise = torch.randn(12, 2, device=DEV, generator=rng)

# %%
def split(dataset, sizes, g):
    order = torch.randperm(len(dataset), generator=g).tolist()
    return [Subset(dataset, part.tolist()) for part in torch.tensor(order).split(sizes)]

# %%
full = TensorDataset(torch.arange(12.).unsqueeze(1), noise.cpu())
train_set, test_set = split(full, [9, 3], rng)
train_dl = DataLoader(train_set, batch_size=3)
xs = torch.cat([x for x, _ in train_dl])
