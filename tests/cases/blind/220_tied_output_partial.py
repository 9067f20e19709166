# id = "220"
# cause = "derived_tensor_in_init"
# also_causes = ["plain_tensor_attribute", "closure_constant"]
# culprit = "self.unembed"
# also_culprit = ["self.unembed.keywords", "self.unembed.keywords['weight']", "lm.unembed", "lm.unembed.keywords['weight']", "self.wte.weight[self.n_special:]", "self.wte.weight[self.n_special:].detach()"]
# culprit_cell = 2
# origin_cell = 2
# also_cells = [3, 4]
# origin = "self.unembed = partial(F.linear, weight=self.wte.weight[self.n_special:].detach())"
# culprit_device = "HOST"
# other_device = "DEV"
# fail_cell = 4
# fix_site = "class __init__"
# visible = "only in an object attribute"
# expect_after_fix = "story.device == torch.device(DEV) and last_logits.device == torch.device(DEV)"
# [[ref_fix]]
# op = "replace"
# cell = 2
# old = "        self.unembed = partial(F.linear, weight=self.wte.weight[self.n_special:].detach())\n"
# new = ""
# [[ref_fix]]
# op = "replace"
# cell = 2
# old = "return self.unembed(self.ln(h))"
# new = "return F.linear(self.ln(h), self.wte.weight[self.n_special:].detach())"
# [rerun]
# cells = [2, 3, 4]

# %%
from functools import partial
import torch, torch.nn as nn, torch.nn.functional as F

CONF = dict(vocab=20, dim=8, n_special=4)

# %%
class TinyLM(nn.Module):
    def __init__(self, vocab, dim, n_special):
        super().__init__()
        self.n_special = n_special
        self.wte = nn.Embedding(vocab, dim)
        self.mix = nn.Linear(dim, dim)
        self.ln = nn.LayerNorm(dim)
        # output shares the embedding, special tokens can't be predicted
        self.unembed = partial(F.linear, weight=self.wte.weight[self.n_special:].detach())

    def hidden(self, ids):
        h = self.wte(ids)
        return h + self.mix(h.cumsum(1))

    def forward(self, ids):
        h = self.hidden(ids)
        return self.unembed(self.ln(h))

# %%
class Greedy:
    """the smallest possible generate()"""
    def __init__(self, lm, max_new=3):
        self.lm, self.max_new = lm.eval(), max_new

    def __call__(self, ids):
        for _ in range(self.max_new):
            logits = self.lm(ids)[:, -1]
            nxt = logits.argmax(-1, keepdim=True) + self.lm.n_special
            ids = torch.cat([ids, nxt], 1)
        return ids, logits

lm = TinyLM(**CONF).to(DEV)
generate = Greedy(lm)

# %%
prompt = torch.tensor([[4, 9, 11]], device=DEV)
with torch.no_grad():
    story, last_logits = generate(prompt)
print(story.tolist())
