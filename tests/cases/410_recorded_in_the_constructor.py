# id = "410"
# cause = "traced_constant"
# also_causes = []
# culprit = "self.head"
# also_culprit = ["service.head"]
# culprit_cell = 3
# origin_cell = 3
# also_cells = [4, 5]
# origin = '''self.head = torch.fx.symbolic_trace(Head(self.width, 3)).eval()'''
# culprit_device = "HOST"
# other_device = "DEV"
# fail_cell = 5
# fix_site = "earlier cell"
# visible = "not in any frame"
# expect_after_fix = "labels.device == torch.device(DEV)"
# [[ref_fix]]
# op = "replace"
# cell = 3
# old = '''torch.fx.symbolic_trace(Head(self.width, 3))'''
# new = '''torch.fx.symbolic_trace(Head(self.width, 3).to(self.device))'''
# [rerun]
# cells = [3, 4, 5]

# %%
import torch
import torch.fx
from torch import nn

from dataclasses import dataclass

# %%
class Head(nn.Module):
    def __init__(self, d, k):
        super().__init__()
        self.proj = nn.Linear(d, k)
        self.register_buffer("offset", torch.linspace(-1, 1, k))

    def forward(self, h):
        device, = {p.device for p in self.proj.parameters()}
        return self.proj(h.to(device)) + self.offset

# %%
@dataclass
class Service:
    width: int = 6
    device: str = DEV

    def __post_init__(self):
        self.head = torch.fx.symbolic_trace(Head(self.width, 3)).eval()

    def start(self):
        self.head.to(self.device)
        return self

    def answer(self, h):
        return self.head(h.to(self.device)).argmax(-1)

# %%
service = Service().start()

# %%
labels = service.answer(torch.rand(4, 6))
