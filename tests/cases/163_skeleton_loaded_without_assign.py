# id = "163"
# cause = "meta_not_materialized"
# also_causes = []
# culprit = "lm"
# also_culprit = ["lm.tok", "lm.tok.weight", "self.tok", "lm.ff", "lm.ff.weight"]
# culprit_cell = 3
# origin_cell = 2
# also_cells = []
# origin = "missing = lm.load_state_dict(weights)"
# culprit_device = "meta"
# other_device = "DEV"
# fail_cell = 3
# fix_site = "model load"
# visible = "only in an object attribute"
# expect_after_fix = "logits.device == torch.device(DEV) and torch.equal(lm.ff.weight.cpu(), weights['ff.weight']) and torch.equal(lm.tok.weight.cpu(), weights['tok.weight'])"
# [[ref_fix]]
# op = "replace"
# cell = 2
# old = "lm.load_state_dict(weights)"
# new = "lm.load_state_dict(weights, assign=True)"
# [rerun]
# cells = [2, 3]

# %%
import torch
from torch import nn

class LM(nn.Module):
    def __init__(self, n=9, d=4):
        super().__init__()
        self.tok = nn.Embedding(n, d)
        self.ff = nn.Linear(d, n, bias=False)
    def forward(self, ids): return self.ff(self.tok(ids))

weights = {k: v * 0.5 for k, v in LM().state_dict().items()}    # as read from disk

# %%
with torch.device("meta"):
    lm = LM()                         # no memory for weights that are overwritten anyway
missing = lm.load_state_dict(weights)

# %%
lm = lm.to(DEV)
logits = lm(torch.tensor([[1, 2]], device=DEV))
