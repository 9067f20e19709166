# id = "116"
# cause = "plain_tensor_attribute"
# also_causes = []
# culprit = "self.cos"
# also_culprit = ["c", "self.cos[:T]", "self.sin", "s", "self.rope", "self.rope.cos", "blocks[0].attn.rope", "blk.attn.rope", "blk.attn.rope.cos", "blocks[0].attn.rope.cos"]
# culprit_cell = 2
# origin_cell = 2
# also_cells = [3, 4]
# origin = "self.cos, self.sin = ang.cos(), ang.sin()"
# culprit_device = "HOST"
# other_device = "DEV"
# fail_cell = 4
# fix_site = "class __init__"
# visible = "only in an object attribute"
# expect_after_fix = "hidden.device == torch.device(DEV)"
# [[ref_fix]]
# op = "replace"
# cell = 2
# old = "class Rotary:\n"
# new = "class Rotary(nn.Module):\n"
# [[ref_fix]]
# op = "replace"
# cell = 2
# old = "        inv = 1.0 / base"
# new = "        super().__init__()\n        inv = 1.0 / base"
# [[ref_fix]]
# op = "replace"
# cell = 2
# old = "self.cos, self.sin = ang.cos(), ang.sin()"
# new = "self.register_buffer('cos', ang.cos()); self.register_buffer('sin', ang.sin())"
# [[ref_fix]]
# op = "replace"
# cell = 2
# old = "def __call__(self, x):"
# new = "def forward(self, x):"
# [rerun]
# cells = [2, 3, 4]

# %%
import torch
import torch.nn as nn
import torch.nn.functional as F
from dataclasses import dataclass

@dataclass
class Config:
    dim: int = 8
    n_heads: int = 2
    n_layers: int = 2
    max_len: int = 16

# %%
class Rotary:
    def __init__(self, dim, max_len, base=10000.0):
        inv = 1.0 / base ** (torch.arange(0, dim, 2) / dim)
        ang = torch.outer(torch.arange(max_len).float(), inv)
        self.cos, self.sin = ang.cos(), ang.sin()

    def __call__(self, x):
        T = x.shape[-2]
        a, b = x.chunk(2, dim=-1)
        c, s = self.cos[:T], self.sin[:T]
        return torch.cat([a * c - b * s, a * s + b * c], dim=-1)

class Attention(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.h = cfg.n_heads
        self.qkv = nn.Linear(cfg.dim, 3 * cfg.dim)
        self.rope = Rotary(cfg.dim // cfg.n_heads, cfg.max_len)
    def forward(self, x):
        B, T, D = x.shape
        q, k, v = self.qkv(x).view(B, T, 3, self.h, -1).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(self.rope(q), self.rope(k), v, is_causal=True)
        return y.transpose(1, 2).reshape(B, T, D)

class Block(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.norm, self.attn = nn.LayerNorm(cfg.dim), Attention(cfg)
    def forward(self, x):
        return x + self.attn(self.norm(x))

# %%
cfg = Config()
blocks = nn.ModuleList([Block(cfg) for _ in range(cfg.n_layers)])
blocks.to(DEV)

# %%
hidden = torch.randn(2, 5, cfg.dim, device=DEV)
for blk in blocks:
    hidden = blk(hidden)
