# id = "133"
# cause = "model_split_multi_gpu"
# also_causes = ["label_not_moved"]
# culprit = "tgt"
# also_culprit = ["tgt.flatten()", "chunk[:, 1:].to(dev0)"]
# culprit_cell = 3
# origin_cell = 2
# also_cells = []
# origin = "yield chunk[:, :-1].to(dev0), chunk[:, 1:].to(dev0)"
# culprit_device = "DEV"
# other_device = "DEV2"
# fail_cell = 3
# fix_site = "a function in an earlier cell"
# visible = "first user frame"
# expect_after_fix = "running.device == torch.device(DEV2)"
# needs = "DEV2"
# [[ref_fix]]
# op = "replace"
# cell = 2
# old = "chunk[:, 1:].to(dev0)"
# new = "chunk[:, 1:].to(dev1)"
# [rerun]
# cells = [2, 3]

# %%
import torch
from torch import nn
dev0, dev1 = torch.device(DEV), torch.device(DEV2)
emb = nn.Embedding(11, 6).to(dev0)
lm_head = nn.Linear(6, 11).to(dev1)

def forward(ids):
    return lm_head(emb(ids).to(dev1))

# %%
def batches(n):
    g = torch.Generator().manual_seed(5)
    for _ in range(n):
        chunk = torch.randint(11, (3, 5), generator=g)
        yield chunk[:, :-1].to(dev0), chunk[:, 1:].to(dev0)

# %%
running = 0.0
for inp, tgt in batches(2):
    logits = forward(inp)
    nll = nn.functional.cross_entropy(logits.flatten(0, 1), tgt.flatten())
    running = running + nll.detach()
