# id = "317"
# cause = "stale_cache"
# also_causes = ["plain_tensor_attribute"]
# culprit = "self.bias(x.size(1))"
# also_culprit = ["enc[0].bias(6)", "bias"]
# culprit_cell = 2
# origin_cell = 3
# also_cells = [4]
# origin = "print(enc(torch.zeros(1, 6, 8)).shape)      # does it run at all?"
# culprit_device = "HOST"
# other_device = "DEV"
# fail_cell = 5
# fix_site = "class of the notebook (cache key)"
# visible = "first user frame"
# expect_after_fix = "hidden.device == torch.device(DEV)"
# # lru_cache knows (self, n) only; other lengths than the tested one work on the card
# [[ref_fix]]
# op = "run"
# code = "AlibiAttention.bias.cache_clear()"

# %%
import math
import torch
from functools import lru_cache
from torch import nn

# %%
class AlibiAttention(nn.Module):
    def __init__(self, d, heads=2):
        super().__init__()
        self.d, self.heads = d, heads
        self.qkv = nn.Linear(d, 3 * d)
        self.out = nn.Linear(d, d)

    @lru_cache(maxsize=16)
    def bias(self, n):
        device = self.out.weight.device
        slopes = torch.tensor([2.0 ** -(h + 1) for h in range(self.heads)], device=device)
        pos = torch.arange(n, device=device)
        return slopes.view(-1, 1, 1) * -(pos[None, :] - pos[:, None]).abs()

    def forward(self, x):
        B, N, D = x.shape
        q, k, v = self.qkv(x).view(B, N, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        scores = q @ k.transpose(-1, -2) / math.sqrt(q.size(-1))
        w = (scores + self.bias(x.size(1))).softmax(-1)
        return x + self.out((w @ v).transpose(1, 2).reshape(B, N, D))

# %%
enc = nn.Sequential(AlibiAttention(8), nn.LayerNorm(8), AlibiAttention(8))
enc.eval()
with torch.no_grad():
    print(enc(torch.zeros(1, 6, 8)).shape)      # does it run at all?

# %%
enc.to(DEV)
with torch.no_grad():
    longer = enc(torch.rand(1, 9, 8, device=DEV))

# %%
with torch.no_grad():
    hidden = enc(torch.rand(3, 6, 8, device=DEV))
