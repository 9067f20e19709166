# id = "276"
# cause = "stale_cache"
# also_causes = ["plain_tensor_attribute"]
# culprit = "self.past"
# also_culprit = ["past", "decoder.past", "self.past[0]", "decoder.past[0]"]
# culprit_cell = 2
# origin_cell = 3
# also_cells = [4, 5]
# origin = "decoder.step(tok)"
# culprit_device = "DEV"
# other_device = "DEV2"
# fail_cell = 5
# fix_site = "an earlier cell"
# visible = "only in an object attribute"
# expect_after_fix = "nxt.device == torch.device(DEV2) and decoder.seen >= 1"
# needs = "DEV2"
# # starting over with an empty cache runs too, but gives other numbers: the context is lost
# [[ref_fix]]
# op = "run"
# code = "decoder.past = tuple(p.to(DEV2) for p in decoder.past)"
# [rerun]
# cells = [5]

# %%
import torch
from torch import nn

# %%
class CachedDecoder(nn.Module):
    def __init__(self, vocab=9, d=6):
        super().__init__()
        self.tok = nn.Embedding(vocab, d)
        self.kv = nn.Linear(d, 2 * d)
        self.q = nn.Linear(d, d)
        self.out = nn.Linear(d, vocab)
        self.past = ()

    @property
    def seen(self):
        return self.past[0].shape[1] if self.past else 0

    def remember(self, *new):
        if self.past:
            new = tuple(torch.cat([old, n], dim=1) for old, n in zip(self.past, new))
        self.past = new
        return new

    @torch.no_grad()
    def step(self, tok):
        x = self.tok(tok)
        k, v = self.remember(*self.kv(x).chunk(2, -1))
        w = torch.bmm(self.q(x), k.transpose(1, 2)).softmax(-1)
        return self.out(torch.bmm(w, v))[:, -1].log_softmax(-1)

# %%
prompt = torch.tensor([[1, 4, 2, 7]])
decoder = CachedDecoder().to(DEV)
for tok in prompt.to(DEV).split(1, dim=1):
    decoder.step(tok)
print("context:", decoder.seen)

# %%
# the first card is needed for the reward model now
decoder = decoder.to(DEV2)

# %%
nxt = decoder.step(torch.tensor([[3]], device=DEV2))
