# id = "121"
# cause = "rnn_state"
# also_causes = ["fresh_tensor_no_device"]
# culprit = "hidden"
# also_culprit = ["hidden[0]", "lm.init_hidden(3)"]
# culprit_cell = 4
# origin_cell = 1
# also_cells = [2]
# origin = "return (torch.zeros(self.nlayers, bsz, self.nhid),"
# culprit_device = "HOST"
# other_device = "DEV"
# fail_cell = 4
# fix_site = "class of the notebook"
# visible = "first user frame"
# expect_after_fix = "total_loss.device == torch.device(DEV)"
# [[ref_fix]]
# op = "replace"
# cell = 1
# old = "return (torch.zeros(self.nlayers, bsz, self.nhid),\n                torch.zeros(self.nlayers, bsz, self.nhid))"
# new = "w = self.decoder.weight\n        return (w.new_zeros(self.nlayers, bsz, self.nhid),\n                w.new_zeros(self.nlayers, bsz, self.nhid))"
# [rerun]
# cells = [1, 3, 4]

# %%
import torch
import torch.nn as nn

class RNNModel(nn.Module):
    def __init__(self, ntoken, ninp, nhid, nlayers=1):
        super().__init__()
        self.nhid, self.nlayers = nhid, nlayers
        self.encoder = nn.Embedding(ntoken, ninp)
        self.rnn = nn.LSTM(ninp, nhid, nlayers)
        self.decoder = nn.Linear(nhid, ntoken)

    def forward(self, tokens, hidden):
        emb = self.encoder(tokens)
        output, hidden = self.rnn(emb, hidden)
        return self.decoder(output).flatten(0, 1), hidden

    def init_hidden(self, bsz):
        return (torch.zeros(self.nlayers, bsz, self.nhid),
                torch.zeros(self.nlayers, bsz, self.nhid))

# %%
def repackage_hidden(h):
    return h.detach() if isinstance(h, torch.Tensor) else tuple(repackage_hidden(v) for v in h)

# %%
lm = RNNModel(20, 6, 9).to(DEV)
corpus = torch.randint(20, (7, 3))

# %%
hidden = lm.init_hidden(3)
total_loss = 0
for i in range(0, 6, 3):
    data, targets = corpus[i:i+3].to(DEV), corpus[i+1:i+4].reshape(-1).to(DEV)
    hidden = repackage_hidden(hidden)
    output, hidden = lm(data, hidden)
    total_loss += nn.functional.cross_entropy(output, targets)
