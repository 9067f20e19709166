# id = "181"
# cause = "derived_tensor_in_init"
# also_causes = ["plain_tensor_attribute"]
# culprit = "self.out_weight"
# also_culprit = ["charlm.out_weight", "charlm"]
# culprit_cell = 1
# origin_cell = 1
# also_cells = [2, 3]
# origin = "self.out_weight = self.emb.weight.detach().t()   # tied: no weights of its own"
# culprit_device = "HOST"
# other_device = "DEV"
# fail_cell = 3
# fix_site = "class __init__"
# visible = "only in an object attribute"
# expect_after_fix = "bpc.device == torch.device(DEV)"
# [[ref_fix]]
# op = "replace"
# cell = 1
# old = "        self.out_weight = self.emb.weight.detach().t()   # tied: no weights of its own\n"
# new = ""
# [[ref_fix]]
# op = "replace"
# cell = 1
# old = "h @ self.out_weight"
# new = "h @ self.emb.weight.detach().t()"
# [rerun]
# cells = [1, 2, 3]

# %%
import torch
from torch import nn
import torch.nn.functional as F

class CharLM(nn.Module):
    def __init__(self, vocab, dim):
        super().__init__()
        self.emb = nn.Embedding(vocab, dim)
        self.mix = nn.Linear(dim, dim)
        self.out_weight = self.emb.weight.detach().t()   # tied: no weights of its own

    def forward(self, ids):
        h = torch.tanh(self.mix(self.emb(ids)))
        return h @ self.out_weight

# %%
torch.manual_seed(3)
charlm = CharLM(9, 4)
charlm = charlm.to(DEV)

# %%
seq = torch.tensor([[1, 2, 3, 4]]).to(DEV)
logits = charlm(seq[:, :-1])
bpc = F.cross_entropy(logits.transpose(1, 2), seq[:, 1:]) / 0.6931
