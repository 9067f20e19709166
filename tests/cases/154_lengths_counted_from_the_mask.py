# id = "154"
# cause = "must_be_cpu"
# also_causes = []
# culprit = "mask.sum(dim=1)"
# also_culprit = ["lengths"]
# culprit_cell = 1
# origin_cell = 1
# also_cells = [2]
# origin = "mask.sum(dim=1),"
# culprit_device = "DEV"
# other_device = "HOST"
# fail_cell = 3
# fix_site = "class of the notebook"
# visible = "not in any frame"
# expect_after_fix = "vec.device == torch.device(DEV)"
# [[ref_fix]]
# op = "replace"
# cell = 1
# old = "mask.sum(dim=1),"
# new = "mask.sum(dim=1).cpu(),"
# [rerun]
# cells = [1, 2, 3]

# %%
import torch
from torch import nn
from torch.nn.utils import rnn as rnn_utils

class SentenceEncoder(nn.Module):
    """(B, T) token ids, 0 is padding -> (B, H)"""
    PAD = 0

    def __init__(self, vocab, dim, hidden):
        super().__init__()
        self.emb = nn.Embedding(vocab, dim, padding_idx=self.PAD)
        self.gru = nn.GRU(dim, hidden, batch_first=True)

    def forward(self, ids):
        mask = ids.ne(self.PAD)
        packed = rnn_utils.pack_padded_sequence(
            self.emb(ids),
            mask.sum(dim=1),
            batch_first=True,
            enforce_sorted=False,
        )
        return self.gru(packed)[1][-1]

# %%
enc = SentenceEncoder(10, 4, 6).to(DEV)
ids = torch.tensor([[3, 4, 5, 0], [7, 0, 0, 0], [1, 2, 3, 4]], device=DEV)

# %%
vec = enc(ids)
