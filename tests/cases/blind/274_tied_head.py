# id = "274"
# cause = "model_split_multi_gpu"
# also_causes = []
# culprit = "h"
# also_culprit = []
# culprit_cell = 2
# origin_cell = 2
# also_cells = []
# origin = "h = layer(h.to(dev))"
# culprit_device = "DEV2"
# other_device = "DEV"
# fail_cell = 4
# fix_site = "forward"
# visible = "raising frame"
# expect_after_fix = "loss.device == torch.device(DEV) and gpt.embed.weight.device == torch.device(DEV) and gpt.embed.weight.grad is not None"
# needs = "DEV2"
# [[ref_fix]]
# op = "replace"
# cell = 2
# old = "F.linear(h, self.embed.weight)"
# new = "F.linear(h.to(self.embed.weight.device), self.embed.weight)"
# [rerun]
# cells = [2, 3, 4]

# %%
import torch
from torch import nn
import torch.nn.functional as F
V, D = 11, 8

# %%
class TinyGPT(nn.Module):
    """word embeddings and output layer share one matrix (which stays on the first card,
    next to the labels)"""

    def __init__(self, plan):
        super().__init__()
        self.embed = nn.Embedding(V, D).to(plan[0])
        self.layers = nn.ModuleList(
            nn.TransformerEncoderLayer(D, 2, 16, dropout=0.0, batch_first=True).to(dev) for dev in plan)
        self.plan = list(plan)

    def forward(self, ids):
        h = self.embed(ids)
        for layer, dev in zip(self.layers, self.plan):
            h = layer(h.to(dev))
        return F.linear(h, self.embed.weight)

# %%
gpt = TinyGPT(plan=[DEV, DEV2])
ids = torch.randint(V, (2, 6), device=DEV)

# %%
gpt.zero_grad()
logits = gpt(ids[:, :-1])
loss = F.cross_entropy(logits.reshape(-1, V), ids[:, 1:].reshape(-1))
loss.backward()
