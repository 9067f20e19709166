# id = "234"
# cause = "must_be_cpu"
# also_causes = []
# culprit = "self.cuts(doc_ids)"
# also_culprit = ["ends", "bounds", "ends + 1", "pooler.cuts(doc_ids)"]
# culprit_cell = 2
# origin_cell = 2
# also_cells = []
# origin = "return ends + 1"
# culprit_device = "DEV"
# other_device = "HOST"
# fail_cell = 4
# fix_site = "class of the notebook"
# visible = "first user frame"
# expect_after_fix = "docs.device == torch.device(DEV) and docs.shape == (3, 5)"
# [[ref_fix]]
# op = "replace"
# cell = 2
# old = "return ends + 1"
# new = "return (ends + 1).cpu()"
# [rerun]
# cells = [2, 3, 4]

# %%
import torch
from torch import nn
from typing import Callable, Dict

REDUCE: Dict[str, Callable] = {
    'mean': lambda t: t.mean(0),
    'max': lambda t: t.amax(0),
    'last': lambda t: t[-1],
}

# %%
class PackedPooler(nn.Module):
    """one vector per document of a packed stream (no padding): flash-attention style"""

    def __init__(self, how='mean'):
        super().__init__()
        self.how = how

    def cuts(self, doc_ids):
        changed = doc_ids[1:] != doc_ids[:-1]
        ends = changed.nonzero().flatten()
        return ends + 1

    def forward(self, tokens, doc_ids):
        bounds = self.cuts(doc_ids)
        pieces = torch.tensor_split(tokens, bounds)
        return torch.stack([REDUCE[self.how](p) for p in pieces])

# %%
class DocEncoder(nn.Module):
    def __init__(self, vocab, d, pooler):
        super().__init__()
        self.emb, self.pooler = nn.Embedding(vocab, d), pooler
        self.ff = nn.Sequential(nn.Linear(d, 2 * d), nn.ReLU(), nn.Linear(2 * d, d))

    def forward(self, stream):
        h = self.emb(stream['ids'])
        h = h + self.ff(h)
        return self.pooler(h, stream['doc'])

def pack(docs):
    return {'ids': torch.cat([torch.tensor(d) for d in docs]),
            'doc': torch.cat([torch.full((len(d),), i) for i, d in enumerate(docs)])}

encoder = DocEncoder(12, 5, PackedPooler('max')).to(DEV)

# %%
stream = {k: v.to(DEV, non_blocking=True) for k, v in pack([[1, 2, 3], [4, 5], [6, 7, 8, 9]]).items()}
docs = encoder(stream)
