# id = "364"
# cause = "traced_constant"
# also_causes = ["model_not_moved"]
# culprit = "self.encoder"
# also_culprit = ["searcher.encoder", "frozen", "torch.jit.freeze(scripted)"]
# culprit_cell = 4
# origin_cell = 3
# also_cells = [3, 5]
# origin = "frozen = torch.jit.freeze(scripted)"
# culprit_device = "HOST"
# other_device = "DEV"
# fail_cell = 5
# fix_site = "earlier cell"
# visible = "not in any frame"
# expect_after_fix = "hits.device == torch.device(DEV) and hits.shape == (2, 3)"
# # freeze() turns the weights into constants of the graph: .to() finds nothing to move any more; move first, then freeze (or do not freeze)
# [[ref_fix]]
# op = "replace"
# cell = 3
# old = "scripted = torch.jit.script(encoder)"
# new = "scripted = torch.jit.script(encoder.to(DEV))"
# [rerun]
# cells = [3, 4, 5]

# %%
import torch
from torch import nn

# %%
class SentenceEncoder(nn.Module):
    def __init__(self, d_in: int = 6, d: int = 8):
        super().__init__()
        self.ff1, self.ff2 = nn.Linear(d_in, d), nn.Linear(d, d)
        self.norm = nn.LayerNorm(d)

    def forward(self, tokens):
        h = self.norm(torch.relu(self.ff1(tokens)))
        return nn.functional.normalize(torch.tanh(self.ff2(h)).mean(1), dim=-1)

# %%
# export for the search service
encoder = SentenceEncoder().eval()
scripted = torch.jit.script(encoder)
frozen = torch.jit.freeze(scripted)
print(len(list(scripted.parameters())), '->', len(list(frozen.parameters())), 'parameters')

# %%
class Searcher:
    def __init__(self, encoder, device):
        self.encoder, self.device = encoder.to(device), device

    @torch.no_grad()
    def encode(self, tokens):
        return self.encoder(tokens.to(self.device))

    def search(self, queries, corpus, k=3):
        sim = self.encode(queries) @ self.encode(corpus).T
        return sim.topk(k).values

searcher = Searcher(frozen, DEV)

# %%
hits = searcher.search(torch.rand(2, 4, 6), torch.rand(9, 4, 6))
