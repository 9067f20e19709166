# id = "103"
# cause = "input_not_moved"
# also_causes = ["fresh_tensor_no_device"]
# culprit = "pad"
# also_culprit = ["key_padding_mask"]
# culprit_cell = 4
# origin_cell = 2
# also_cells = [3]
# origin = "pad = torch.arange(x.size(1))[None, :] >= lengths[:, None]"
# culprit_device = "HOST"
# other_device = "DEV"
# fail_cell = 4
# fix_site = "cell line that failed"
# visible = "first user frame"
# expect_after_fix = "pooled.device == torch.device(DEV)"
# [[ref_fix]]
# op = "replace"
# cell = 4
# old = "x = x.to(DEV)"
# new = "x, pad = x.to(DEV), pad.to(DEV)"

# %%
import torch
from torch import nn

seqs = [torch.randn(n, 8) for n in (5, 3, 4)]

# %%
def collate(samples):
    lengths = torch.tensor([len(s) for s in samples])
    x = nn.utils.rnn.pad_sequence(samples, batch_first=True)
    pad = torch.arange(x.size(1))[None, :] >= lengths[:, None]
    return x, pad

# %%
class Pooler(nn.Module):
    def __init__(self):
        super().__init__()
        self.score = nn.Linear(8, 1)
    def forward(self, h, key_padding_mask):
        s = self.score(h).squeeze(-1)
        s = s.masked_fill(key_padding_mask, float("-inf"))
        return (s.softmax(-1).unsqueeze(-1) * h).sum(1)

proj = nn.Linear(8, 8).to(DEV); pooler = Pooler().to(DEV)

# %%
x, pad = collate(seqs)
x = x.to(DEV)
pooled = pooler(torch.tanh(proj(x)), pad)
