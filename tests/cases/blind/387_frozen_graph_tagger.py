# id = "387"
# cause = "traced_constant"
# also_causes = []
# culprit = "self.encoder"
# also_culprit = ["svc.encoder", "frozen", "encoder"]
# culprit_cell = 3
# origin_cell = 4
# also_cells = [2, 5]
# origin = "frozen = torch.fx.symbolic_trace(enc)"
# culprit_device = "HOST"
# other_device = "DEV"
# fail_cell = 5
# fix_site = "earlier cell"
# visible = "not in any frame"
# expect_after_fix = "tags.device == torch.device(DEV) and tags.shape == (3, 6, 5)"
# # the parameters of the graph module are right: the device in its recorded call of to() is not
# [[ref_fix]]
# op = "replace"
# cell = 4
# old = "frozen = torch.fx.symbolic_trace(enc)"
# new = "frozen = torch.fx.symbolic_trace(enc.to(DEV))"
# [rerun]
# cells = [4, 5]

# %%
import torch
import torch.fx
import torch.nn as nn

# %%
class WordEncoder(nn.Module):
    """words + places -> contextual vectors"""
    def __init__(self, n_words=40, width=16, longest=32):
        super().__init__()
        self.words = nn.Embedding(n_words, width)
        self.places = nn.Embedding(longest, width)
        self.mix = nn.Linear(width, width)

    @property
    def device(self):                       # always where the weights are
        return next(self.parameters()).device

    def forward(self, ids):
        ids = ids.to(self.device)           # callers need not care
        where = (ids > 0).long().cumsum(1)
        h = self.words(ids) + self.places(where)
        return torch.tanh(self.mix(h))

# %%
class TagService:
    def __init__(self, encoder, n_tags, device):
        self.device = torch.device(device)
        self.encoder = encoder.to(self.device).eval()
        self.tagger = nn.Linear(16, n_tags).to(self.device)

    @torch.no_grad()
    def __call__(self, ids):
        h = self.encoder(ids.to(self.device))
        return self.tagger(h)

# %%
# the service only ever sees the frozen artefact, not our class
enc = WordEncoder()
frozen = torch.fx.symbolic_trace(enc)
svc = TagService(frozen, n_tags=5, device=DEV)
print(len(list(frozen.graph.nodes)), {p.device for p in svc.encoder.parameters()})

# %%
tags = svc(torch.randint(40, (3, 6)))
