# id = "307"
# cause = "fresh_tensor_no_device"
# also_causes = []
# culprit = "mask"
# also_culprit = ["subsequent_mask(T)", "torch.tril(torch.ones(n, n))", "mask == 0", "torch.ones(n, n)"]
# culprit_cell = 3
# origin_cell = 2
# also_cells = [2]
# origin = "return torch.tril(torch.ones(n, n)).view(1, 1, n, n)"
# culprit_device = "HOST"
# other_device = "DEV"
# fail_cell = 5
# fix_site = "a function in an earlier cell"
# visible = "raising frame"
# expect_after_fix = "nll.device == torch.device(DEV) and gpt.head.weight.grad is not None"
# [[ref_fix]]
# op = "replace"
# cell = 3
# old = "mask = subsequent_mask(T)"
# new = "mask = subsequent_mask(T).to(x.device)"
# [rerun]
# cells = [3, 4, 5]

# %%
import math
import torch
from torch import nn
from torch.nn import functional as F
from dataclasses import dataclass

@dataclass
class GPTConfig:
    vocab: int = 20
    d: int = 8
    heads: int = 2
    layers: int = 2
    block: int = 16

# %%
def subsequent_mask(n):
    "1 where position i may look at position j"
    return torch.tril(torch.ones(n, n)).view(1, 1, n, n)

# %%
class Block(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.h = cfg.heads
        self.qkv = nn.Linear(cfg.d, 3 * cfg.d)
        self.proj = nn.Linear(cfg.d, cfg.d)
        self.ln = nn.LayerNorm(cfg.d)

    def forward(self, x):
        B, T, C = x.shape
        q, k, v = (t.view(B, T, self.h, C // self.h).transpose(1, 2) for t in self.qkv(self.ln(x)).split(C, dim=2))
        att = q @ k.transpose(-2, -1) / math.sqrt(C // self.h)
        mask = subsequent_mask(T)
        att = att.masked_fill(mask == 0, float('-inf'))
        y = F.softmax(att, dim=-1) @ v
        return x + self.proj(y.transpose(1, 2).reshape(B, T, C))

# %%
class GPT(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.tok = nn.Embedding(cfg.vocab, cfg.d)
        self.pos = nn.Embedding(cfg.block, cfg.d)
        self.blocks = nn.ModuleList(Block(cfg) for _ in range(cfg.layers))
        self.head = nn.Linear(cfg.d, cfg.vocab)

    def forward(self, idx, targets=None):
        pos = torch.arange(idx.size(1), device=idx.device)
        x = self.tok(idx) + self.pos(pos)
        for b in self.blocks:
            x = b(x)
        logits = self.head(x)
        return logits, None if targets is None else F.cross_entropy(logits.flatten(0, 1), targets.flatten())

gpt = GPT(GPTConfig()).to(DEV)

# %%
text = torch.randint(0, 20, (3, 9)).to(DEV)
_, nll = gpt(text[:, :-1], text[:, 1:])
nll.backward()
