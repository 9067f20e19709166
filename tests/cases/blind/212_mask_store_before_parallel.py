# id = "212"
# cause = "dp_replica_state"
# also_causes = ["stale_cache", "plain_tensor_attribute"]
# culprit = "self._bias[key]"
# also_culprit = ["self._bias", "self.distance_bias(T)", "bias", "gpt.att._bias[6]", "gpt.att._bias"]
# culprit_cell = 1
# origin_cell = 1
# also_cells = [3, 4]
# origin = "self._bias[key] = -slopes * (pos[None] - pos[:, None]).abs()"
# culprit_device = "DEV"
# other_device = "DEV2"
# fail_cell = 4
# fix_site = "class of the notebook"
# visible = "in no frame (worker thread of DataParallel, replica 1)"
# expect_after_fix = "scores.device == torch.device(DEV) and scores.shape == (6, 6, 8)"
# needs = "DEV2"
# # the dict is one object for all replicas: what the smoke test cached on the first card is handed to the second
# [[ref_fix]]
# op = "replace"
# cell = 1
# old = "return self._bias[key]"
# new = "return self._bias[key].to(self.qk.weight.device)"
# [rerun]
# cells = [1, 2, 3, 4]

# %%
import math, torch
from torch import nn
import torch.nn.functional as F

class AlibiAttention(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.qk = nn.Linear(dim, 2 * dim, bias=False)
        self.v = nn.Linear(dim, dim, bias=False)
        self._bias = {}               # length -> (T, T), computing it every time is slow

    def distance_bias(self, T):
        key = T
        if key not in self._bias:
            pos = torch.arange(T, device=self.qk.weight.device, dtype=torch.float)
            slopes = 0.5
            self._bias[key] = -slopes * (pos[None] - pos[:, None]).abs()
        return self._bias[key]

    def forward(self, x):
        T = x.shape[1]
        q, k = self.qk(x).chunk(2, -1)
        att = (q.unsqueeze(2) * k.unsqueeze(1)).sum(-1) / math.sqrt(q.shape[-1])   # short sequences only
        bias = self.distance_bias(T)
        w = F.softmax(att + bias, -1)
        return (w.unsqueeze(-1) * self.v(x).unsqueeze(1)).sum(2)

class Block(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.att, self.norm = AlibiAttention(dim), nn.LayerNorm(dim)
    def forward(self, x):
        return x + self.att(self.norm(x))

# %%
gpt = Block(8).to(DEV)

# %% smoke test on one card
tokens = torch.randn(6, 6, 8, device=DEV)
with torch.no_grad():
    print('one card', gpt(tokens).mean().item())

# %% now the real thing
multi = nn.DataParallel(gpt) if DEV != HOST else gpt
with torch.no_grad():
    scores = multi(tokens)
