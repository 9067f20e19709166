# id = "233"
# cause = "must_be_cpu"
# also_causes = []
# culprit = "batch.lengths"
# also_culprit = ["lengths", "self.lengths", "(self.ids != self.pad).sum(1)", "b.lengths"]
# culprit_cell = 3
# origin_cell = 2
# also_cells = [2, 4]
# origin = "return (self.ids != self.pad).sum(1)"
# culprit_device = "DEV"
# other_device = "HOST"
# fail_cell = 4
# fix_site = "class of the notebook"
# visible = "raising frame"
# expect_after_fix = "all(v.device == torch.device(DEV) for v in vecs)"
# [[ref_fix]]
# op = "replace"
# cell = 3
# old = "pack_padded_sequence(emb, batch.lengths,"
# new = "pack_padded_sequence(emb, batch.lengths.cpu(),"
# [rerun]
# cells = [3, 4]

# %%
from dataclasses import dataclass, replace
import torch, torch.nn as nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_sequence

# %%
@dataclass(frozen=True)
class TextBatch:
    ids: torch.Tensor
    pad: int = 0

    @property
    def lengths(self):
        return (self.ids != self.pad).sum(1)

    def to(self, device):
        return replace(self, ids=self.ids.to(device))

    @classmethod
    def collate(cls, sents, vocab):
        rows = [torch.tensor([vocab[w] for w in s.split()]) for s in sents]
        return cls(pad_sequence(rows, batch_first=True))

# %%
class SentenceEncoder(nn.Module):
    def __init__(self, n_words, d=6):
        super().__init__()
        self.emb = nn.Embedding(n_words + 1, d, padding_idx=0)
        self.gru = nn.GRU(d, d, batch_first=True)

    def forward(self, batch):
        emb = self.emb(batch.ids)
        packed = pack_padded_sequence(emb, batch.lengths, batch_first=True, enforce_sorted=False)
        _, h = self.gru(packed)
        return nn.functional.normalize(h[-1], dim=-1)

corpus = ['the cat sat', 'a dog', 'the dog sat on a cat', 'on']
vocab = {w: i + 1 for i, w in enumerate(sorted(set(' '.join(corpus).split())))}
encoder = SentenceEncoder(len(vocab)).to(DEV).eval()

# %%
@torch.no_grad()
def embed(sents, bs=2):
    for i in range(0, len(sents), bs):
        b = TextBatch.collate(sents[i:i + bs], vocab).to(DEV)
        yield encoder(b)

vecs = list(embed(corpus))
