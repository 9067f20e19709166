# id = "285"
# cause = "meta_not_materialized"
# also_causes = []
# culprit = "self.inv_freq"
# also_culprit = ["lm.rope.inv_freq", "lm.rope", "self", "self.rope", "self.rope.inv_freq"]
# culprit_cell = 2
# origin_cell = 4
# also_cells = [3, 5]
# origin = "missing, unexpected = lm.load_state_dict(shard, assign=True)"
# culprit_device = "meta"
# other_device = "DEV"
# fail_cell = 5
# fix_site = "model load call"
# visible = "only in an object attribute (a buffer that is in no checkpoint)"
# expect_after_fix = "feats.device == torch.device(DEV) and torch.allclose(lm.rope.inv_freq.cpu(), torch.tensor([1.0, 0.01]))"
# numbers = false   # on the host the notebook stops as well (meta); the expectation asks for the real values
# [[ref_fix]]
# op = "replace"
# cell = 4
# old = "lm.eval()"
# new = "lm.rope.inv_freq = 10000.0 ** (-torch.arange(0, 4, 2, device=DEV) / 4); lm.eval()"
# [rerun]
# cells = [4, 5]

# %%
import torch
from torch import nn

# %%
class Rope(nn.Module):
    def __init__(self, dim, base=10000.0):
        super().__init__()
        self.register_buffer("inv_freq", base ** (-torch.arange(0, dim, 2) / dim), persistent=False)

    def forward(self, x):
        t = torch.arange(x.size(1), device=x.device).float()
        ang = t[:, None] * self.inv_freq
        c, s = ang.cos(), ang.sin()
        a, b = x[..., ::2], x[..., 1::2]
        return torch.stack([a * c - b * s, a * s + b * c], -1).flatten(-2)

class Backbone(nn.Module):
    def __init__(self, dim=4):
        super().__init__()
        self.proj, self.rope, self.norm = nn.Linear(dim, dim), Rope(dim), nn.LayerNorm(dim)
    def forward(self, x):
        return self.norm(self.rope(self.proj(x)))

# %%
def read_shard(path, device):
    # stands for safetensors.torch.load_file(path, device=...)
    return {k: v.to(device) for k, v in Backbone().state_dict().items()}

# %%
with torch.device("meta"):                  # no memory for two copies
    lm = Backbone()
shard = read_shard("model-00001-of-00001.safetensors", DEV)
missing, unexpected = lm.load_state_dict(shard, assign=True)
assert not missing and not unexpected
lm.eval()

# %%
with torch.no_grad():
    feats = lm(torch.ones(1, 3, 4, device=DEV))
