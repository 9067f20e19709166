# id = "183"
# cause = "fresh_tensor_no_device"
# also_causes = []
# culprit = "offset"
# also_culprit = ["torch.arange(batch_size).unsqueeze(1) * beam", "torch.arange(batch_size)"]
# culprit_cell = 2
# origin_cell = 2
# also_cells = []
# origin = "offset = torch.arange(batch_size).unsqueeze(1) * beam"
# culprit_device = "HOST"
# other_device = "DEV"
# fail_cell = 3
# fix_site = "a function in an earlier cell"
# visible = "first user frame"
# expect_after_fix = "scores.device == torch.device(DEV)"
# [[ref_fix]]
# op = "replace"
# cell = 2
# old = "torch.arange(batch_size)"
# new = "torch.arange(batch_size, device=device)"
# [rerun]
# cells = [2, 3]

# %%
import torch
from torch import nn
VOCAB, BOS = 6, 0

class Step(nn.Module):
    def __init__(self):
        super().__init__()
        self.e = nn.Embedding(VOCAB, 5); self.o = nn.Linear(5, VOCAB)
    def forward(self, last): return self.o(self.e(last)).log_softmax(-1)

# %%
def timed(fn):
    import functools, time
    @functools.wraps(fn)
    def wrapper(*args, **kwargs):
        start = time.perf_counter()
        try:
            return fn(*args, **kwargs)
        finally:
            wrapper.seconds = time.perf_counter() - start
    return wrapper

@timed
@torch.no_grad()
def beam_search(model, batch_size, beam=2, max_len=3):
    device = next(model.parameters()).device
    seqs = torch.full((batch_size * beam, 1), BOS, device=device)
    scores = torch.zeros(batch_size, beam, device=device)
    offset = torch.arange(batch_size).unsqueeze(1) * beam
    while seqs.size(1) < max_len:
        logp = model(seqs[:, -1]).view(batch_size, beam, -1)
        total = (scores.unsqueeze(-1) + logp).flatten(1)
        scores, flat = total.topk(beam, dim=-1)
        parent = (flat // VOCAB + offset).flatten()
        seqs = torch.cat([seqs[parent], (flat % VOCAB).view(-1, 1)], dim=1)
    return seqs, scores

# %%
decoder = Step().to(DEV)
seqs, scores = beam_search(decoder, batch_size=2)
