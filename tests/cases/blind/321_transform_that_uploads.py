# id = "321"
# cause = "cuda_in_dataset"
# also_causes = []
# culprit = "img.to(self.device)"
# also_culprit = ["img", "self.transform(img)", "self.transform", "loader.dataset", "loader", "train_ds", "train_ds[0]", "train_ds[0][0]", "train_tf", "train_tf.ops[2]"]
# culprit_cell = 2
# origin_cell = 4
# also_cells = [3, 5]
# origin = "train_tf = Compose([Normalize(0.5, 0.25), RandomFlip(), ToDevice(DEV)])"
# culprit_device = "DEV"
# other_device = "HOST"
# fail_cell = 5
# fix_site = "dataset / collate"
# visible = "not in any frame"
# expect_after_fix = "feats.device == torch.device(DEV) and feats.shape == (6, 4)"
# numbers = false   # flips are drawn in the worker: with num_workers=0, which is a right fix too, they come from another generator
# [[ref_fix]]
# op = "replace"
# cell = 4
# old = "RandomFlip(), ToDevice(DEV)]"
# new = "RandomFlip()]"
# [rerun]
# cells = [4, 5]

# %%
import torch
from torch import nn
from torch.utils.data import Dataset, DataLoader

# %%
class Compose:
    def __init__(self, ops):
        self.ops = ops
    def __call__(self, img):
        for op in self.ops:
            img = op(img)
        return img

class Normalize:
    def __init__(self, mean, std):
        self.mean, self.std = mean, std
    def __call__(self, img):
        return (img - self.mean) / self.std

class RandomFlip:
    def __call__(self, img):
        return img.flip(-1) if torch.rand(1).item() < 0.5 else img

class ToDevice:
    def __init__(self, device):
        self.device = device
    def __call__(self, img):
        return img.to(self.device)

# %%
class LeafDataset(Dataset):
    def __init__(self, n, transform=None):
        self.raw = torch.randint(0, 256, (n, 1, 6, 6), dtype=torch.uint8)
        self.transform = transform
    def __len__(self):
        return len(self.raw)
    def __getitem__(self, i):
        img = self.raw[i].float() / 255
        if self.transform:
            img = self.transform(img)
        return img, i % 3

# %%
train_tf = Compose([Normalize(0.5, 0.25), RandomFlip(), ToDevice(DEV)])
train_ds = LeafDataset(6, train_tf)
loader = DataLoader(train_ds, batch_size=3, num_workers=1)
backbone = nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten()).to(DEV)

# %%
chunks = []
with torch.no_grad():
    for x, y in loader:
        chunks.append(backbone(x.to(DEV)))
feats = torch.cat(chunks)
