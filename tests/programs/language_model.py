"""A word-level LSTM language model, with truncated backpropagation, packed sentences and sampling."""

# %%
import math

import torch
import torch.nn as nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence, pad_sequence

device = torch.device(DEV)
words = "the cat sat on a mat while dogs ran over hills and rivers under one red moon".split()
vocabulary = {word: i for i, word in enumerate(["<eos>", *words])}
n_tokens = len(vocabulary)

# %%
rules = torch.randint(0, n_tokens, (n_tokens, 3))
corpus = [1]
for _ in range(600):
    corpus.append(int(rules[corpus[-1], torch.randint(0, 3, ()).item()]))
corpus = torch.tensor(corpus)


def batchify(data, batch_size):
    n_batches = data.size(0) // batch_size
    data = data.narrow(0, 0, n_batches * batch_size)
    return data.view(batch_size, -1).t().contiguous().to(device)


train_data = batchify(corpus, 8)
bptt = 12


# %%
class RNNModel(nn.Module):
    def __init__(self, n_tokens, n_inputs, n_hidden, n_layers, dropout=0.2):
        super().__init__()
        self.n_hidden, self.n_layers = n_hidden, n_layers
        self.drop = nn.Dropout(dropout)
        self.encoder = nn.Embedding(n_tokens, n_inputs)
        self.rnn = nn.LSTM(n_inputs, n_hidden, n_layers, dropout=dropout)
        self.decoder = nn.Linear(n_hidden, n_tokens)
        nn.init.uniform_(self.encoder.weight, -0.1, 0.1)

    def forward(self, tokens, hidden):
        output, hidden = self.rnn(self.drop(self.encoder(tokens)), hidden)
        return self.decoder(self.drop(output)).view(-1, n_tokens), hidden

    def init_hidden(self, batch_size):
        weight = next(self.parameters())
        shape = (self.n_layers, batch_size, self.n_hidden)
        return weight.new_zeros(shape), weight.new_zeros(shape)


model = RNNModel(n_tokens, 16, 24, 2).to(device)
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=1.0, momentum=0.5)
losses = []


# %%
def repackage_hidden(hidden):
    return tuple(h.detach() for h in hidden)


def get_batch(source, i):
    length = min(bptt, len(source) - 1 - i)
    return source[i : i + length], source[i + 1 : i + 1 + length].reshape(-1)


for epoch in range(2):
    model.train()
    hidden = model.init_hidden(train_data.size(1))
    for i in range(0, train_data.size(0) - 1, bptt):
        data, targets = get_batch(train_data, i)
        hidden = repackage_hidden(hidden)
        optimizer.zero_grad()
        output, hidden = model(data, hidden)
        loss = criterion(output, targets)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 0.25)
        optimizer.step()
        losses.append(loss.item())
    print(f"epoch {epoch}: perplexity {math.exp(losses[-1]):.2f}")

# %%
# sentences of different lengths, padded and packed
sentences = [corpus[s : s + n] for s, n in ((0, 9), (40, 5), (90, 7))]
lengths = torch.tensor([len(s) for s in sentences])
padded = pad_sequence(sentences).to(device)
model.eval()
with torch.no_grad():
    packed = pack_padded_sequence(model.encoder(padded), lengths, enforce_sorted=False)
    output, (h, c) = model.rnn(packed)
    output, back = pad_packed_sequence(output)
    mask = torch.arange(len(output), device=device)[:, None] < lengths.to(device)[None]
    scores = (output.pow(2).sum(-1) * mask).sum(0) / lengths.to(device)
losses += scores.tolist()

# %%
generator = torch.Generator(device=device).manual_seed(7)
token = torch.zeros(1, 1, dtype=torch.long, device=device)
hidden = model.init_hidden(1)
text = []
names = list(vocabulary)
with torch.no_grad():
    for _ in range(12):
        output, hidden = model(token, hidden)
        weights = output.squeeze().div(0.8).softmax(-1)
        token = torch.multinomial(weights, 1, generator=generator).view(1, 1)
        text.append(names[token.item()])
print(" ".join(text))
losses.append(float(sum(vocabulary[word] for word in text)))
