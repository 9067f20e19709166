# id = "393"
# cause = "closure_constant"
# also_causes = ["index_device", "fresh_tensor_no_device"]
# culprit = "banned"
# also_culprit = ["PIPELINE[1].keywords['banned']", "PIPELINE[1]", "process", "process.keywords['banned']", "torch.tensor([0, 3])"]
# culprit_cell = 2
# origin_cell = 3
# also_cells = [4, 5]
# origin = "partial(forbid, banned=torch.tensor([0, 3])),"
# culprit_device = "HOST"
# other_device = "DEV"
# fail_cell = 5
# fix_site = "earlier cell"
# visible = "raising frame"
# expect_after_fix = "text.device == torch.device(DEV) and text.shape == (2, 6) and not bool(((text[:, 2:] == 0) | (text[:, 2:] == 3)).any()) and last_logits.device == torch.device(DEV)"
# [[ref_fix]]
# op = "replace"
# cell = 3
# old = "torch.tensor([0, 3])"
# new = "torch.tensor([0, 3], device=DEV)"
# [rerun]
# cells = [3, 5]

# %%
import torch
from functools import partial
from torch import nn

class TinyLM(nn.Module):
    def __init__(self, v=11, d=8):
        super().__init__()
        self.e, self.rnn, self.o = nn.Embedding(v, d), nn.GRU(d, d, batch_first=True), nn.Linear(d, v)
    def forward(self, ids):
        return self.o(self.rnn(self.e(ids))[0])[:, -1]

# %%
def cool_down(ids, logits, *, temperature):
    return logits / temperature

def forbid(ids, logits, *, banned):
    return logits.index_fill(1, banned, float("-inf"))

def repetition(ids, logits, *, penalty):
    seen = logits.gather(1, ids)
    return logits.scatter(1, ids, torch.where(seen > 0, seen / penalty, seen * penalty))

# %%
PIPELINE = [
    partial(cool_down, temperature=0.7),
    partial(forbid, banned=torch.tensor([0, 3])),
    partial(repetition, penalty=1.3),
]

# %%
@torch.no_grad()
def generate(lm, ids, n):
    for _ in range(n):
        logits = lm(ids)
        for process in PIPELINE:
            logits = process(ids, logits)
        ids = torch.cat([ids, logits.argmax(-1, keepdim=True)], dim=1)
    return ids, logits.softmax(-1)

# %%
lm = TinyLM().to(DEV).eval()
prompt = torch.tensor([[1, 5], [2, 7]]).to(DEV)
text, last_logits = generate(lm, prompt, n=4)
