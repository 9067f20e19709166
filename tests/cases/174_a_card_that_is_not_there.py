# id = "174"
# cause = "no_accelerator"
# also_causes = []
# culprit = ""
# also_culprit = []
# culprit_cell = 3
# origin_cell = 1
# also_cells = []
# origin = "gpu_id = 3                      # the number from the cluster's script"
# culprit_device = "none"
# other_device = "none"
# fail_cell = 3
# fix_site = "earlier cell"
# visible = "not in any frame"
# expect_after_fix = "bag.device.type == torch.device(DEV).type"
# # nothing is on a wrong device: the culprit has to be null
# [[ref_fix]]
# op = "replace"
# cell = 1
# old = "gpu_id = 3 "
# new = "gpu_id = 0 "
# [rerun]
# cells = [1, 3]

# %%
import torch
from torch import nn
gpu_id = 3                      # the number from the cluster's script
has_gpu = torch.cuda.is_available()

# %%
class BagOfWords(nn.Module):
    def __init__(self, vocab=50, n=4):
        super().__init__()
        self.table = nn.EmbeddingBag(vocab, n)
    def forward(self, t):
        return self.table(t)

# %%
bow = BagOfWords()
bow = bow.to(f"cuda:{gpu_id}" if has_gpu else "cpu")
bag = bow(torch.randint(50, (2, 6)).to(bow.table.weight.device))
