# id = "360"
# cause = "cuda_in_dataset"
# also_causes = ["to_numpy"]
# culprit = "img"
# also_culprit = ["self.images", "self.images[i]", "ds.images", "ds.images[0]", "ds"]
# culprit_cell = 2
# origin_cell = 2
# also_cells = [3, 4]
# origin = "self.images = images.to(device)          # the whole set fits, saves the copies"
# culprit_device = "DEV"
# other_device = "HOST"
# fail_cell = 4
# fix_site = "dataset"
# visible = "first user frame"
# expect_after_fix = "seen == 12 and logits.device == torch.device(DEV)"
# [[ref_fix]]
# op = "replace"
# cell = 2
# old = "self.images = images.to(device) "
# new = "self.images = images "
# [rerun]
# cells = [2, 3, 4]

# %%
import random
import numpy as np
import torch
from torch import nn
from torch.utils.data import Dataset, DataLoader

class RandomFlip:
    def __init__(self, p=0.5): self.p = p
    def __call__(self, a): return a[..., ::-1] if random.random() < self.p else a

class RandomErase:
    def __init__(self, size=2): self.size = size
    def __call__(self, a):
        a = a.copy()
        r, c = (random.randrange(s - self.size) for s in a.shape[-2:])
        a[..., r:r + self.size, c:c + self.size] = 0
        return a

# %%
class PreloadedDataset(Dataset):
    def __init__(self, images, labels, device, transforms=()):
        self.images = images.to(device)          # the whole set fits, saves the copies
        self.labels = labels
        self.transforms = transforms

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, i):
        img = self.images[i]
        if self.transforms:
            a = np.asarray(img)
            for t in self.transforms:
                a = t(a)
            img = torch.from_numpy(np.ascontiguousarray(a))
        return img, self.labels[i]

# %%
random.seed(0)
ds = PreloadedDataset(torch.rand(12, 1, 8, 8), torch.randint(0, 3, (12,)), DEV, [RandomFlip(), RandomErase()])
loader = DataLoader(ds, batch_size=4, shuffle=True)
cnn = nn.Sequential(nn.Conv2d(1, 3, 3), nn.ReLU(), nn.Flatten(), nn.Linear(108, 3)).to(DEV)

# %%
seen = 0
for x, y in loader:
    x, y = x.to(DEV), y.to(DEV)
    logits = cnn(x)
    nn.functional.cross_entropy(logits, y).backward()
    seen += len(y)
