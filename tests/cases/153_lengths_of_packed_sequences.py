# id = "153"
# cause = "must_be_cpu"
# also_causes = []
# culprit = "lengths"
# also_culprit = ["n", "to_device(batch, DEV)"]
# culprit_cell = 1
# origin_cell = 3
# also_cells = [2]
# origin = "x, n = to_device(batch, DEV)"
# culprit_device = "DEV"
# other_device = "HOST"
# fail_cell = 3
# fix_site = "class of the notebook"
# visible = "first user frame"
# expect_after_fix = "tags.device == torch.device(DEV)"
# [[ref_fix]]
# op = "replace"
# cell = 1
# old = "pack_padded_sequence(x, lengths,"
# new = "pack_padded_sequence(x, lengths.cpu(),"
# [rerun]
# cells = [1, 2, 3]

# %%
import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

class Tagger(nn.Module):
    def __init__(self, d=4, h=5):
        super().__init__()
        self.lstm = nn.LSTM(d, h, batch_first=True, bidirectional=True)
        self.tag = nn.Linear(2 * h, 3)
    def forward(self, x, lengths):
        packed = pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
        out, _ = self.lstm(packed)
        out, _ = pad_packed_sequence(out, batch_first=True)
        return self.tag(out)

# %%
def to_device(batch, device):
    return [t.to(device) for t in batch]

model = Tagger().to(DEV)
loader = [(torch.randn(3, 6, 4), torch.tensor([6, 2, 4]))]

# %%
for batch in loader:
    x, n = to_device(batch, DEV)
    tags = model(x, n)
