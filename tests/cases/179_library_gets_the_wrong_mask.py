# id = "179"
# cause = "input_not_moved"
# also_causes = []
# culprit = "enc.attention_mask"
# also_culprit = ["enc['attention_mask']", "enc", "attention_mask", "bias", "attention_bias"]
# culprit_cell = 4
# origin_cell = 3
# also_cells = [1]
# origin = "enc = Batch(input_ids=torch.tensor([[4, 5, 6], [7, 8, 0]]), attention_mask=torch.tensor([[1, 1, 1], [1, 1, 0]]))"
# culprit_device = "HOST"
# other_device = "DEV"
# fail_cell = 4
# fix_site = "cell line that failed"
# visible = "first user frame"
# expect_after_fix = "states.device == torch.device(DEV)"
# # the file lies outside site-packages: what its own frames call the bias is the stray value as well
# [[ref_fix]]
# op = "replace"
# cell = 4
# old = "attention_mask=enc.attention_mask)"
# new = "attention_mask=enc.attention_mask.to(DEV))"

# %%
import os, sys, tempfile
folder = tempfile.mkdtemp()
with open(os.path.join(folder, "minihf.py"), "w") as f:
    f.write("""
import torch
from torch import nn


def extend(mask, dtype):
    return (1.0 - mask[:, None, :].to(dtype)) * torch.finfo(dtype).min


class Block(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.query, self.key = nn.Linear(d, d), nn.Linear(d, d)

    def forward(self, hidden_states, attention_bias=None):
        scores = self.query(hidden_states) @ self.key(hidden_states).transpose(1, 2)
        if attention_bias is not None:
            scores = scores + attention_bias
        return scores.softmax(-1) @ hidden_states


class MiniModel(nn.Module):
    def __init__(self, vocab=30, d=6, layers=2):
        super().__init__()
        self.wte = nn.Embedding(vocab, d)
        self.h = nn.ModuleList(Block(d) for _ in range(layers))

    def forward(self, input_ids, attention_mask=None):
        x = self.wte(input_ids)
        bias = extend(attention_mask, x.dtype) if attention_mask is not None else None
        for block in self.h:
            x = block(x, attention_bias=bias)
        return x
""")
sys.path.append(folder)

# %%
import torch
import minihf
backbone = minihf.MiniModel().to(DEV)

# %%
class Batch(dict):
    """attribute access, as the tokenizers' batches have it"""
    __getattr__ = dict.__getitem__

enc = Batch(input_ids=torch.tensor([[4, 5, 6], [7, 8, 0]]), attention_mask=torch.tensor([[1, 1, 1], [1, 1, 0]]))

# %%
with torch.no_grad():
    states = backbone(enc.input_ids.to(DEV), attention_mask=enc.attention_mask)
