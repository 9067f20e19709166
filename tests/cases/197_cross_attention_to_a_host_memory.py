# id = "197"
# cause = "input_not_moved"
# also_causes = ["library_returns_cpu", "plain_tensor_attribute"]
# culprit = "docs"
# also_culprit = ["memory", "retrieve(prompt[0, -1])", "self.split(memory)"]
# culprit_cell = 3
# origin_cell = 2
# also_cells = [1]
# origin = "return self.vectors[best].unsqueeze(0)"
# culprit_device = "HOST"
# other_device = "DEV"
# fail_cell = 3
# fix_site = "cell line that failed"
# visible = "first user frame"
# expect_after_fix = "fused.device == torch.device(DEV)"
# # moving retrieve.vectors is no fix: it stays in host memory on purpose, and the search runs there
# [[ref_fix]]
# op = "replace"
# cell = 3
# old = "xattn(prompt, docs)"
# new = "xattn(prompt, docs.to(prompt.device))"

# %%
import torch
from torch import nn
import torch.nn.functional as F

class CrossAttention(nn.Module):
    def __init__(self, d=8, heads=2):
        super().__init__()
        self.heads = heads
        self.q = nn.Linear(d, d)
    def split(self, t): return t.unflatten(-1, (self.heads, -1)).transpose(1, 2)
    def forward(self, x, memory):
        out = F.scaled_dot_product_attention(self.split(self.q(x)), self.split(memory), self.split(memory))
        return out.transpose(1, 2).flatten(2)

# %%
class Retriever:
    """finds documents for a prompt; vectors are kept in host memory"""
    def __init__(self, n, d):
        self.vectors = torch.randn(n, d)
    def __call__(self, query, k=3):
        best = (self.vectors @ query.cpu()).topk(k).indices
        return self.vectors[best].unsqueeze(0)

retrieve = Retriever(10, 8)
xattn = CrossAttention().to(DEV)

# %%
prompt = torch.randn(1, 4, 8, device=DEV)
docs = retrieve(prompt[0, -1])
fused = xattn(prompt, docs)
