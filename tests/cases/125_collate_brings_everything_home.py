# id = "125"
# cause = "hardcoded_device"
# also_causes = ["label_not_moved"]
# culprit = "yb"
# also_culprit = ["y", "torch.tensor(ys, device=\"cpu\")"]
# culprit_cell = 3
# origin_cell = 2
# also_cells = []
# origin = "y = torch.tensor(ys, device=\"cpu\")     # left from an old version"
# culprit_device = "HOST"
# other_device = "DEV"
# fail_cell = 3
# fix_site = "dataset or collate function"
# visible = "first user frame"
# expect_after_fix = "logreg.weight.device == torch.device(DEV) and loss.device == torch.device(DEV)"
# [[ref_fix]]
# op = "replace"
# cell = 2
# old = "torch.tensor(ys, device=\"cpu\")"
# new = "torch.tensor(ys, device=x.device)"
# [rerun]
# cells = [2, 3]

# %%
import torch
from torch.utils.data import Dataset, DataLoader

class Points(Dataset):
    def __init__(self, n): self.x = torch.randn(n, 3)
    def __len__(self): return len(self.x)
    def __getitem__(self, i): return self.x[i], int(self.x[i, 0] > 0)

# %%
def collate(rows):
    xs, ys = zip(*rows)
    x = torch.stack(xs).to(DEV)
    y = torch.tensor(ys, device="cpu")     # left from an old version
    return x, y

dl = DataLoader(Points(12), batch_size=4, collate_fn=collate)

# %%
logreg = torch.nn.Linear(3, 2).to(DEV)
opt = torch.optim.SGD(logreg.parameters(), lr=0.3)
for xb, yb in dl:
    opt.zero_grad()
    loss = torch.nn.functional.cross_entropy(logreg(xb), yb)
    loss.backward(); opt.step()
