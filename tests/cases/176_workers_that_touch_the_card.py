# id = "176"
# cause = "cuda_in_dataset"
# also_causes = []
# culprit = "self.ids[i].to(DEV)"
# also_culprit = ["", "self.ids[i]", "self.ids", "loader", "loader.dataset"]
# culprit_cell = 2
# origin_cell = 2
# also_cells = [3]
# origin = "return self.ids[i].to(DEV)"
# culprit_device = "DEV"
# other_device = "HOST"
# fail_cell = 3
# fix_site = "dataset or collate function"
# visible = "not in any frame"
# expect_after_fix = "vectors.device == torch.device(DEV)"
# # the traceback of the worker is text; a culprit of null is right too
# [[ref_fix]]
# op = "replace"
# cell = 2
# old = "return self.ids[i].to(DEV)"
# new = "return self.ids[i]"
# [[ref_fix]]
# op = "replace"
# cell = 3
# old = "emb(ids).detach()"
# new = "emb(ids.to(DEV)).detach()"
# [rerun]
# cells = [2, 3]

# %%
import torch
from torch import nn
from torch.utils.data import Dataset, DataLoader

emb = nn.Embedding(16, 4).to(DEV)
warm = emb(torch.tensor([0], device=DEV))

# %%
class Ids(Dataset):
    def __init__(self, n): self.ids = torch.arange(n) % 16
    def __len__(self): return len(self.ids)
    def __getitem__(self, i):
        return self.ids[i].to(DEV)

# %%
loader = DataLoader(Ids(12), batch_size=4, num_workers=2)
vectors = []
for ids in loader:
    vectors.append(emb(ids).detach())
vectors = torch.cat(vectors)
