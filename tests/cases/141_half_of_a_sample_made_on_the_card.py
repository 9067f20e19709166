# id = "141"
# cause = "cuda_in_dataset"
# also_causes = ["stray_in_collection"]
# culprit = "x"
# also_culprit = ["base.clone()", "base", "torch.zeros(self.d, device=DEV)", "loader"]
# culprit_cell = 1
# origin_cell = 1
# also_cells = [2, 3]
# origin = "base = torch.zeros(self.d, device=DEV)"
# culprit_device = "DEV"
# other_device = "HOST"
# fail_cell = 3
# fix_site = "dataset or collate function"
# visible = "not in any frame"
# expect_after_fix = "all(s.device == torch.device(DEV) for s in seen) and len(seen) == 2"
# [[ref_fix]]
# op = "replace"
# cell = 1
# old = "torch.zeros(self.d, device=DEV)"
# new = "torch.zeros(self.d)"
# [rerun]
# cells = [1, 2, 3]

# %%
import torch
from torch.utils.data import IterableDataset, DataLoader

class Stream(IterableDataset):
    def __init__(self, n, d): self.n, self.d = n, d
    def __iter__(self):
        base = torch.zeros(self.d, device=DEV)
        for k in range(self.n):
            x = base.clone() if k == 0 else torch.full((self.d,), float(k))
            yield {"x": x, "y": torch.tensor(float(k % 2))}

# %%
loader = DataLoader(Stream(6, 3), batch_size=3)
net = torch.nn.Linear(3, 1).to(DEV)

# %%
seen = []
for batch in loader:
    batch = {k: v.to(DEV) for k, v in batch.items()}
    seen.append(net(batch["x"]).squeeze(-1) - batch["y"])
