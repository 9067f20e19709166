# id = "275"
# cause = "stale_cache"
# also_causes = []
# culprit = "cos"
# also_culprit = ["sin", "rotary_tables(x)", "rotary_tables.memo"]
# culprit_cell = 3
# origin_cell = 4
# also_cells = [2]
# origin = "print(attn(torch.randn(1, 4, 6)).shape)        # shapes ok?"
# culprit_device = "HOST"
# other_device = "DEV"
# fail_cell = 5
# fix_site = "an earlier cell (the key of the cache)"
# visible = "raising frame"
# expect_after_fix = "out.device == torch.device(DEV) and out.shape == (2, 4, 6)"
# [[ref_fix]]
# op = "run"
# code = "rotary_tables.memo.clear()"

# %%
import functools
import torch
from torch import nn

# %%
def memo_by_shape(fn):
    """tables depend on the last two sizes only, so make them once"""
    memo = {}
    @functools.wraps(fn)
    def wrapper(x):
        key = tuple(x.shape[-2:])
        if key not in memo:
            memo[key] = fn(x)
        return memo[key]
    wrapper.memo = memo
    return wrapper

@memo_by_shape
def rotary_tables(x):
    n, d = x.shape[-2:]
    freq = 10000 ** (-torch.arange(0, d, 2, device=x.device) / d)
    ang = torch.outer(torch.arange(n, device=x.device).float(), freq)
    return ang.cos().repeat(1, 2), ang.sin().repeat(1, 2)

# %%
def rotate(x):
    cos, sin = rotary_tables(x)
    a, b = x.chunk(2, -1)
    return x * cos + torch.cat([-b, a], -1) * sin

class RotaryAttention(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.q, self.k, self.v = nn.Linear(d, d), nn.Linear(d, d), nn.Linear(d, d)
    def forward(self, x):
        q, k = rotate(self.q(x)), rotate(self.k(x))
        return nn.functional.scaled_dot_product_attention(q, k, self.v(x), is_causal=True)

# %%
attn = RotaryAttention(6)
print(attn(torch.randn(1, 4, 6)).shape)        # shapes ok?

# %%
attn.to(DEV)
out = attn(torch.randn(2, 4, 6, device=DEV))
