# id = "202"
# cause = "plain_tensor_attribute"
# also_causes = ["index_device"]
# culprit = "self.vectors"
# also_culprit = ["vectors", "bag.vectors", "bag"]
# culprit_cell = 2
# origin_cell = 2
# also_cells = [1, 3]
# origin = "self.vectors = vectors              # frozen, so no Embedding needed"
# culprit_device = "HOST"
# other_device = "DEV"
# fail_cell = 3
# fix_site = "class __init__"
# visible = "only in an object attribute"
# expect_after_fix = "scores.device == torch.device(DEV)"
# # the message speaks of the indices: they are right
# [[ref_fix]]
# op = "replace"
# cell = 2
# old = "self.vectors = vectors   "
# new = "self.register_buffer('vectors', vectors)   "
# [rerun]
# cells = [2, 3]

# %%
import torch
from torch import nn

glove = {"king": [0.1, 0.2, 0.3], "queen": [0.2, 0.2, 0.3], "<unk>": [0.0, 0.0, 0.0]}
itos = list(glove)
vectors = torch.tensor(list(glove.values()))

# %%
class Bag(nn.Module):
    def __init__(self, vectors, n_out):
        super().__init__()
        self.vectors = vectors              # frozen, so no Embedding needed
        self.out = nn.Linear(vectors.size(1), n_out)
    def forward(self, ids):
        return self.out(self.vectors[ids].mean(1))

bag = Bag(vectors, 2).to(DEV)

# %%
ids = torch.tensor([[0, 1], [2, 0]]).to(DEV)
scores = bag(ids)
