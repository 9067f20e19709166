# id = "140"
# cause = "cuda_in_dataset"
# also_causes = ["to_numpy"]
# culprit = "im"
# also_culprit = ["self.images", "self.images[i]", "self"]
# culprit_cell = 2
# origin_cell = 2
# also_cells = [3]
# origin = "self.images = images.to(DEV)          # \"faster if they are there already\""
# culprit_device = "DEV"
# other_device = "HOST"
# fail_cell = 4
# fix_site = "dataset or collate function"
# visible = "first user frame"
# expect_after_fix = "loss.device == torch.device(DEV)"
# [[ref_fix]]
# op = "replace"
# cell = 2
# old = "self.images = images.to(DEV) "
# new = "self.images = images "
# [rerun]
# cells = [2, 3, 4]

# %%
import numpy as np
import torch
from torch.utils.data import Dataset, DataLoader

def random_flip(arr, rng):
    return arr[:, ::-1].copy() if rng.random() < 0.5 else arr

# %%
class Faces(Dataset):
    def __init__(self, images, train=True):
        self.images = images.to(DEV)          # "faster if they are there already"
        self.train, self.rng = train, np.random.default_rng(0)

    def __len__(self):
        return self.images.shape[0]

    def __getitem__(self, i):
        im = self.images[i]
        if self.train:
            im = torch.from_numpy(random_flip(im.numpy(), self.rng))
        return im, i % 2

# %%
faces = DataLoader(Faces(torch.rand(8, 5, 5)), batch_size=4)
clf = torch.nn.Linear(25, 2).to(DEV)

# %%
for im, lab in faces:
    logits = clf(im.flatten(1).to(DEV))
    loss = torch.nn.functional.cross_entropy(logits, lab.to(DEV))
