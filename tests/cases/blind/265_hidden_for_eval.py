# id = "265"
# cause = "rnn_state"
# also_causes = ["fresh_tensor_no_device"]
# culprit = "hidden"
# also_culprit = ["hidden[0]", "hidden[1]", "lm.first_state(x.size(1))"]
# culprit_cell = 3
# origin_cell = 2
# also_cells = [4]
# origin = "return tuple(torch.zeros(self.layers, batch, self.nhid) for _ in 'hc')"
# culprit_device = "HOST"
# other_device = "DEV"
# fail_cell = 4
# fix_site = "class of the notebook"
# visible = "first user frame"
# expect_after_fix = "math.isfinite(ppl) and all(s.device == torch.device(DEV) for s in last)"
# [[ref_fix]]
# op = "replace"
# cell = 2
# old = "torch.zeros(self.layers, batch, self.nhid)"
# new = "self.head.weight.new_zeros(self.layers, batch, self.nhid)"
# [rerun]
# cells = [2, 3, 4]

# %%
import math
import torch
from torch import nn

text = "to be or not to be that is the question "
stoi = {c: i for i, c in enumerate(sorted(set(text)))}
corpus = torch.tensor([stoi[c] for c in text])

# %%
class CharLM(nn.Module):
    def __init__(self, vocab, nhid=6, layers=2):
        super().__init__()
        self.nhid, self.layers = nhid, layers
        self.inp = nn.Embedding(vocab, nhid)
        self.rnn = nn.LSTM(nhid, nhid, layers)
        self.head = nn.Linear(nhid, vocab)

    def first_state(self, batch):
        return tuple(torch.zeros(self.layers, batch, self.nhid) for _ in 'hc')

    def forward(self, ids, hidden):
        out, hidden = self.rnn(self.inp(ids), hidden)
        return self.head(out), hidden

# %%
def chunks(stream, bptt):
    for i in range(0, len(stream) - 1, bptt):
        n = min(bptt, len(stream) - 1 - i)
        yield stream[i:i + n], stream[i + 1:i + 1 + n]

def perplexity(lm, stream, bptt=5):
    lm.eval()
    hidden, nll = None, 0.0
    with torch.no_grad():
        for x, y in chunks(stream, bptt):
            if hidden is None:
                hidden = lm.first_state(x.size(1))
            logits, hidden = lm(x, hidden)
            nll += nn.functional.cross_entropy(logits.flatten(0, 1), y.flatten(), reduction="sum").item()
    return math.exp(nll / stream[1:].numel()), hidden

# %%
lm = CharLM(len(stoi)).to(DEV)
stream = corpus.view(2, -1).t().contiguous().to(DEV)
ppl, last = perplexity(lm, stream)
