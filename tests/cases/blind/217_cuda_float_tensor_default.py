# id = "217"
# cause = "default_device_global"
# also_causes = ["fresh_tensor_no_device", "hardcoded_device"]
# culprit = "mean"
# also_culprit = ["stats(self.channels)", "torch.tensor(values)", "mean[:, None, None]"]
# culprit_cell = 3
# origin_cell = 2
# also_cells = [1, 5]
# origin = "torch.set_default_tensor_type('torch.cuda.FloatTensor')"
# culprit_device = "DEV"
# other_device = "HOST"
# fail_cell = 5
# fix_site = "earlier cell"
# visible = "raising frame"
# expect_after_fix = "feats.device == torch.device(DEV) and crops[0].device == torch.device(HOST)"
# # 2018 code: every fresh float tensor goes to the card while the images of the data set stay on the host
# [[ref_fix]]
# op = "replace"
# cell = 3
# old = "mean, std = stats(self.channels)"
# new = "mean, std = (s.to(img.device) for s in stats(self.channels))"
# [rerun]
# cells = [3, 4, 5]

# %%
import warnings; warnings.simplefilter('ignore')
import numpy as np
import torch
import torch.nn as nn

IMAGENET = {'r': (.485, .229), 'g': (.456, .224), 'b': (.406, .225)}

def stats(channels):
    cols = zip(*(IMAGENET[c] for c in channels))
    return tuple(torch.tensor(values) for values in cols)

# %%
use_cuda = DEV.startswith('cuda')
if use_cuda:
    torch.set_default_tensor_type('torch.cuda.FloatTensor')
else:
    torch.set_default_tensor_type('torch.FloatTensor')

# %%
class Crops(torch.utils.data.Dataset):
    def __init__(self, arrays, channels='rgb'):
        self.arrays, self.channels = arrays, channels

    def __len__(self):
        return len(self.arrays)

    def normalize(self, img):
        mean, std = stats(self.channels)
        return (img - mean[:, None, None]) / std[:, None, None]

    def __getitem__(self, i):
        return self.normalize(torch.from_numpy(self.arrays[i]))

# %%
rs = np.random.RandomState(0)
crops = Crops([rs.rand(3, 5, 5).astype(np.float32) for _ in range(4)])
cnn = nn.Sequential(nn.Conv2d(3, 2, 3), nn.ReLU(), nn.Flatten())
print('parameters live on', next(cnn.parameters()).device)

# %%
def batches(ds, n):
    for i in range(0, len(ds), n):
        yield torch.stack([ds[j] for j in range(i, min(i + n, len(ds)))])

feats = torch.cat([cnn(b.to(DEV)) for b in batches(crops, 2)]).detach()
