# id = "109"
# cause = "fresh_tensor_no_device"
# also_causes = []
# culprit = "tril"
# also_culprit = ["tril == 0", "torch.tril(torch.ones(T, T))", "torch.ones(T, T)"]
# culprit_cell = 2
# origin_cell = 2
# also_cells = []
# origin = "tril = torch.tril(torch.ones(T, T))"
# culprit_device = "HOST"
# other_device = "DEV"
# fail_cell = 4
# fix_site = "forward"
# visible = "raising frame"
# expect_after_fix = "y.device == torch.device(DEV)"
# [[ref_fix]]
# op = "replace"
# cell = 2
# old = "torch.ones(T, T)"
# new = "torch.ones(T, T, device=x.device)"
# [rerun]
# cells = [2, 3, 4]

# %%
import torch
import torch.nn as nn
from torch.nn import functional as F
torch.manual_seed(1337)
n_embd, block_size = 16, 8

# %%
class Head(nn.Module):
    def __init__(self, head_size):
        super().__init__()
        self.key = nn.Linear(n_embd, head_size, bias=False)
        self.query = nn.Linear(n_embd, head_size, bias=False)
        self.value = nn.Linear(n_embd, head_size, bias=False)

    def forward(self, x):
        B, T, C = x.shape
        k, q = self.key(x), self.query(x)
        wei = q @ k.transpose(-2, -1) * k.shape[-1] ** -0.5
        tril = torch.tril(torch.ones(T, T))
        wei = wei.masked_fill(tril == 0, float('-inf'))
        return F.softmax(wei, dim=-1) @ self.value(x)

class MultiHead(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.heads = nn.ModuleList(Head(n_embd // n) for _ in range(n))
    def forward(self, x):
        return torch.cat([h(x) for h in self.heads], dim=-1)

# %%
attn = MultiHead(4)
attn = attn.to(DEV)

# %%
y = attn(torch.randn(2, block_size, n_embd, device=DEV))
