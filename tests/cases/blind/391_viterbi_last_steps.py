# id = "391"
# cause = "index_device"
# also_causes = []
# culprit = "ends"
# also_culprit = ["ends.unsqueeze(1)", "(lengths - 1).view(-1, 1)", "ends[:, :, None]", "ends[:, :, None].expand(-1, -1, trellis.shape[-1])"]
# culprit_cell = 3
# origin_cell = 3
# also_cells = []
# origin = "ends = (lengths - 1).view(-1, 1)"
# culprit_device = "HOST"
# other_device = "DEV"
# fail_cell = 5
# fix_site = "a function in an earlier cell"
# visible = "raising frame"
# expect_after_fix = "best.device == torch.device(DEV) and best.shape == (3,)"
# # lengths itself has to stay on the host: packing wants it there
# [[ref_fix]]
# op = "replace"
# cell = 3
# old = "ends = (lengths - 1).view(-1, 1)"
# new = "ends = (lengths - 1).view(-1, 1).to(trellis.device)"
# [rerun]
# cells = [3, 5]

# %%
import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence, pad_sequence

# %%
class Emissions(nn.Module):
    def __init__(self, vocab, hidden, n_tags):
        super().__init__()
        self.emb = nn.Embedding(vocab, hidden, padding_idx=0)
        self.rnn = nn.LSTM(hidden, hidden, batch_first=True, bidirectional=True)
        self.out = nn.Linear(2 * hidden, n_tags)

    def forward(self, tokens, lengths):
        packed = pack_padded_sequence(self.emb(tokens), lengths, batch_first=True, enforce_sorted=False)
        h, _ = pad_packed_sequence(self.rnn(packed)[0], batch_first=True)
        return self.out(h)

# %%
def viterbi_scores(emissions, transitions):
    score = emissions[:, 0]
    yield score
    for t in range(1, emissions.shape[1]):
        score = (score.unsqueeze(2) + transitions).amax(1) + emissions[:, t]
        yield score

def score_of_best_path(emissions, transitions, lengths):
    trellis = torch.stack(list(viterbi_scores(emissions, transitions)), dim=1)
    ends = (lengths - 1).view(-1, 1)
    final = trellis.gather(1, ends[:, :, None].expand(-1, -1, trellis.shape[-1]))
    return final.squeeze(1).amax(-1)

# %%
tagger = Emissions(20, 6, 4).to(DEV)
transitions = nn.Parameter(torch.randn(4, 4, device=DEV))
sentences = [torch.randint(1, 20, (n,)) for n in (5, 2, 4)]

# %%
tokens = pad_sequence(sentences, batch_first=True).to(DEV)
lengths = torch.tensor([len(s) for s in sentences])
with torch.no_grad():
    best = score_of_best_path(tagger(tokens, lengths), transitions, lengths)
