"""An encoder-decoder transformer learns to reverse sequences; greedy decoding with a cache of the memory."""

# %%
import math

import torch
from torch import nn

device = torch.device(DEV)
PAD, BOS, EOS, N = 0, 1, 2, 12
losses = []


# %%
class PositionalEncoding(nn.Module):
    def __init__(self, d_model, dropout=0.1, max_len=40):
        super().__init__()
        self.dropout = nn.Dropout(dropout)
        position = torch.arange(max_len).unsqueeze(1)
        div_term = torch.exp(torch.arange(0, d_model, 2) * (-math.log(10000.0) / d_model))
        pe = torch.zeros(1, max_len, d_model)
        pe[0, :, 0::2] = torch.sin(position * div_term)
        pe[0, :, 1::2] = torch.cos(position * div_term)
        self.register_buffer("pe", pe)

    def forward(self, x):
        return self.dropout(x + self.pe[:, : x.size(1)])


class Seq2Seq(nn.Module):
    def __init__(self, d_model=32):
        super().__init__()
        self.scale = math.sqrt(d_model)
        self.embed = nn.Embedding(N, d_model, padding_idx=PAD)
        self.position = PositionalEncoding(d_model)
        self.transformer = nn.Transformer(d_model, 4, 1, 1, 64, dropout=0.1, batch_first=True)
        self.generator = nn.Linear(d_model, N)

    def tokens(self, x):
        return self.position(self.embed(x) * self.scale)

    def forward(self, source, target):
        mask = nn.Transformer.generate_square_subsequent_mask(target.size(1), device=target.device)
        out = self.transformer(
            self.tokens(source),
            self.tokens(target),
            tgt_mask=mask,
            src_key_padding_mask=(source == PAD).float().masked_fill(source == PAD, float("-inf")),
            tgt_key_padding_mask=(target == PAD).float().masked_fill(target == PAD, float("-inf")),
        )
        return self.generator(out)


model = Seq2Seq().to(device)
for p in model.parameters():
    if p.dim() > 1:
        nn.init.xavier_uniform_(p)


# %%
def make_batch(size, longest=6):
    lengths = torch.randint(3, longest + 1, (size,))
    source = torch.full((size, longest), PAD)
    target = torch.full((size, longest + 2), PAD)
    for row, n in enumerate(lengths.tolist()):
        word = torch.randint(3, N, (n,))
        source[row, :n] = word
        target[row, 0], target[row, 1 : n + 1], target[row, n + 1] = BOS, word.flip(0), EOS
    return source, target


loss_fn = nn.CrossEntropyLoss(ignore_index=PAD)
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, betas=(0.9, 0.98))
warmup = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: min(1.0, (step + 1) / 8))

# %%
model.train()
for step in range(16):
    source, target = make_batch(16)
    source, target = source.to(device), target.to(device)
    logits = model(source, target[:, :-1])
    loss = loss_fn(logits.reshape(-1, N), target[:, 1:].reshape(-1))
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    grad_norm = nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    warmup.step()
    losses.append(loss.item())
print("last losses", losses[-3:])


# %%
@torch.no_grad()
def greedy_decode(source, max_len=8):
    model.eval()
    memory = model.transformer.encoder(model.tokens(source))
    ys = torch.full((source.size(0), 1), BOS, device=source.device)
    done = torch.zeros(source.size(0), dtype=torch.bool, device=source.device)
    for _ in range(max_len):
        mask = nn.Transformer.generate_square_subsequent_mask(ys.size(1), device=ys.device)
        out = model.transformer.decoder(model.tokens(ys), memory, tgt_mask=mask)
        word = model.generator(out[:, -1]).argmax(-1)
        word = torch.where(done, torch.full_like(word, PAD), word)
        done |= word == EOS
        ys = torch.cat([ys, word[:, None]], dim=1)
        if done.all():
            break
    return ys


source, target = make_batch(4)
decoded = greedy_decode(source.to(device))
losses.append(float(decoded.sum()))

# %%
# attention as a picture would show it
q = torch.randn(1, 2, 5, 8, device=device)
weights = torch.softmax(q @ q.transpose(-2, -1) / math.sqrt(q.size(-1)), dim=-1)
same = nn.functional.scaled_dot_product_attention(q, q, q)
assert torch.allclose(weights @ q, same, atol=1e-5)
losses.append(weights.mean((0, 1)).cpu().numpy().trace().item())
