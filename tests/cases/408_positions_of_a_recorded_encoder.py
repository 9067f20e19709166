# id = "408"
# cause = "traced_constant"
# also_causes = []
# culprit = "graph"
# also_culprit = []
# culprit_cell = 5
# origin_cell = 4
# also_cells = [4]
# origin = '''graph = torch.fx.symbolic_trace(Tagger())'''
# culprit_device = "HOST"
# other_device = "DEV"
# fail_cell = 5
# fix_site = "earlier cell"
# visible = "not in any frame"
# expect_after_fix = "scores.device == torch.device(DEV)"
# [[ref_fix]]
# op = "replace"
# cell = 4
# old = '''torch.fx.symbolic_trace(Tagger())'''
# new = '''torch.fx.symbolic_trace(Tagger().to(DEV))'''
# [rerun]
# cells = [4, 5]

# %%
import torch
import torch.fx
from torch import nn

# %%
class Places(nn.Module):
    def __init__(self, width=8, longest=6):
        super().__init__()
        self.table = nn.Embedding(longest, width)

    def forward(self, x):
        home = next(self.parameters()).device
        return x.to(home) + self.table.weight

# %%
class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.places, self.out = Places(), nn.Linear(8, 3)

    @property
    def home(self):
        return self.out.weight.device

    def forward(self, x):
        return self.out(self.places(x).to(self.home))

# %%
graph = torch.fx.symbolic_trace(Tagger())
graph = graph.to(DEV)

# %%
scores = graph(torch.randn(2, 6, 8, device=DEV))
