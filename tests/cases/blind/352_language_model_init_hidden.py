# id = "352"
# cause = "rnn_state"
# also_causes = ["fresh_tensor_no_device"]
# culprit = "hidden"
# also_culprit = ["model.init_hidden(batch_size)", "hidden[0]", "hidden[1]"]
# culprit_cell = 4
# origin_cell = 2
# also_cells = []
# origin = "return tuple(torch.zeros(self.nlayers, bsz, self.nhid) for _ in range(2))"
# culprit_device = "HOST"
# other_device = "DEV"
# fail_cell = 5
# fix_site = "a method of a class"
# visible = "first user frame"
# expect_after_fix = "total_loss.device == torch.device(DEV)"
# [[ref_fix]]
# op = "replace"
# cell = 2
# old = "torch.zeros(self.nlayers, bsz, self.nhid)"
# new = "self.decoder.weight.new_zeros(self.nlayers, bsz, self.nhid)"
# [rerun]
# cells = [2, 3, 4, 5]

# %%
import torch
import torch.nn as nn

def batchify(ids, bsz):
    n = ids.size(0) // bsz
    return ids[:n * bsz].view(bsz, -1).t().contiguous()

# %%
class RNNModel(nn.Module):
    """encoder, recurrent module, decoder"""
    def __init__(self, ntoken, ninp, nhid, nlayers):
        super().__init__()
        self.nhid, self.nlayers = nhid, nlayers
        self.encoder = nn.Embedding(ntoken, ninp)
        self.rnn = nn.LSTM(ninp, nhid, nlayers)
        self.decoder = nn.Linear(nhid, ntoken)

    def forward(self, input, hidden):
        output, hidden = self.rnn(self.encoder(input), hidden)
        return self.decoder(output).flatten(0, 1), hidden

    def init_hidden(self, bsz):
        return tuple(torch.zeros(self.nlayers, bsz, self.nhid) for _ in range(2))

# %%
ntokens, batch_size, bptt = 20, 3, 4
train_data = batchify(torch.randint(0, ntokens, (60,)), batch_size).to(DEV)
model = RNNModel(ntokens, 6, 8, 2).to(DEV)
criterion = nn.CrossEntropyLoss()

# %%
def repackage_hidden(h):
    """detach hidden states from their history"""
    return h.detach() if isinstance(h, torch.Tensor) else tuple(repackage_hidden(v) for v in h)

def get_batch(source, i):
    n = min(bptt, len(source) - 1 - i)
    return source[i:i + n], source[i + 1:i + 1 + n].reshape(-1)

def train(lr=1.0):
    model.train()
    total = 0.
    hidden = model.init_hidden(batch_size)
    for i in range(0, train_data.size(0) - 1, bptt):
        data, targets = get_batch(train_data, i)
        model.zero_grad()
        hidden = repackage_hidden(hidden)
        output, hidden = model(data, hidden)
        loss = criterion(output, targets)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 0.25)
        for p in model.parameters():
            p.data.add_(p.grad, alpha=-lr)
        total = total + loss.detach()
    return total

# %%
total_loss = train()
