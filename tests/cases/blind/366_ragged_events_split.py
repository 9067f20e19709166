# id = "366"
# cause = "must_be_cpu"
# also_causes = []
# culprit = "bounds"
# also_culprit = ["batch.offsets()", "counts.cumsum(0)[:-1]", "self.counts.cumsum(0)[:-1]"]
# culprit_cell = 3
# origin_cell = 2
# also_cells = []
# origin = "return self.counts.cumsum(0)[:-1]"
# culprit_device = "DEV"
# other_device = "HOST"
# fail_cell = 4
# fix_site = "a function in an earlier cell"
# visible = "first user frame"
# expect_after_fix = "energy.device == torch.device(DEV) and energy.shape == (4, 1)"
# # tensor_split takes its cuts from the host only; a list is as good
# [[ref_fix]]
# op = "replace"
# cell = 3
# old = "torch.tensor_split(h, bounds)"
# new = "torch.tensor_split(h, bounds.cpu())"
# [rerun]
# cells = [3, 4]

# %%
import torch
from torch import nn
from dataclasses import dataclass

# %%
# calorimeter events: a different number of hits in each, kept flat
@dataclass
class EventBatch:
    hits: torch.Tensor       # [sum(counts), 4]
    counts: torch.Tensor     # [n_events]

    @classmethod
    def collate(cls, events):
        return cls(torch.cat(events), torch.tensor([len(e) for e in events]))

    def to(self, device):
        return EventBatch(*(getattr(self, f).to(device) for f in self.__dataclass_fields__))

    def offsets(self):
        return self.counts.cumsum(0)[:-1]

    def mean_hits(self):
        return self.counts.float().mean()

# %%
class HitPooling(nn.Module):
    def __init__(self, d=8):
        super().__init__()
        self.phi = nn.Sequential(nn.Linear(4, d), nn.ReLU(), nn.Linear(d, d))
        self.rho = nn.Linear(2 * d, 1)

    def forward(self, batch):
        h = self.phi(batch.hits)
        bounds = batch.offsets()
        events = torch.tensor_split(h, bounds)
        pooled = torch.stack([torch.cat([e.mean(0), e.amax(0)]) for e in events])
        return self.rho(pooled)

model = HitPooling().to(DEV)

# %%
events = [torch.rand(n, 4) for n in (3, 7, 1, 5)]
batch = EventBatch.collate(events).to(DEV)
with torch.no_grad():
    energy = model(batch) / batch.mean_hits()
