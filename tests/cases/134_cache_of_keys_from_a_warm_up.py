# id = "134"
# cause = "stale_cache"
# also_causes = ["plain_tensor_attribute", "stray_in_collection"]
# culprit = "self.past[0]"
# also_culprit = ["self.past", "layer.past", "layer.past[0]", "layer.past[1]"]
# culprit_cell = 1
# origin_cell = 2
# also_cells = [3]
# origin = "layer(torch.randn(1, 2, 8))      # prompt, on the host"
# culprit_device = "HOST"
# other_device = "DEV"
# fail_cell = 3
# fix_site = "earlier cell"
# visible = "only in an object attribute"
# expect_after_fix = "nxt.device == torch.device(DEV)"
# # layer.reset() runs too but forgets the prompt: other numbers
# [[ref_fix]]
# op = "run"
# code = "layer.past = tuple(t.to(DEV) for t in layer.past)"

# %%
import torch
from torch import nn

class CachedAttention(nn.Module):
    def __init__(self, d=8):
        super().__init__()
        self.q, self.k, self.v = (nn.Linear(d, d) for _ in range(3))
        self.reset()

    def reset(self):
        self.past = None

    def forward(self, x, use_cache=True):
        k, v = self.k(x), self.v(x)
        if self.past is not None:
            k = torch.cat([self.past[0], k], dim=1)
            v = torch.cat([self.past[1], v], dim=1)
        if use_cache:
            self.past = (k.detach(), v.detach())
        w = (self.q(x) @ k.transpose(1, 2) / 8 ** 0.5).softmax(-1)
        return w @ v

# %%
layer = CachedAttention().eval()
with torch.no_grad():
    layer(torch.randn(1, 2, 8))      # prompt, on the host

# %%
layer.to(DEV)
token = torch.randn(1, 1, 8, device=DEV)
with torch.no_grad():
    nxt = layer(token)
