# id = "369"
# cause = "stray_in_collection"
# also_causes = ["fresh_tensor_no_device"]
# culprit = "slides[1]"
# also_culprit = ["slides", "self.empty()", "torch.zeros(self.dim)"]
# culprit_cell = 3
# origin_cell = 3
# also_cells = []
# origin = "return torch.zeros(self.dim)"
# culprit_device = "HOST"
# other_device = "DEV"
# fail_cell = 5
# fix_site = "a method of a class"
# visible = "raising frame"
# expect_after_fix = "slide_logits.device == torch.device(DEV) and slide_logits.shape == (3, 2)"
# [[ref_fix]]
# op = "replace"
# cell = 3
# old = "return torch.zeros(self.dim)"
# new = "return torch.zeros(self.dim, device=self.cls.weight.device)"
# [rerun]
# cells = [3, 4, 5]

# %%
import torch
from torch import nn

# %%
class GatedAttention(nn.Module):
    """Ilse et al., attention based multiple instance learning"""
    def __init__(self, dim, hidden=5):
        super().__init__()
        self.V, self.U, self.w = nn.Linear(dim, hidden), nn.Linear(dim, hidden), nn.Linear(hidden, 1)
    def forward(self, h):
        a = self.w(torch.tanh(self.V(h)) * torch.sigmoid(self.U(h)))
        return (a.softmax(0) * h).sum(0), a

# %%
class SlideClassifier(nn.Module):
    def __init__(self, d_in=6, dim=8, n_classes=2):
        super().__init__()
        self.dim = dim
        self.embed = nn.Sequential(nn.Linear(d_in, dim), nn.ReLU())
        self.attn = GatedAttention(dim)
        self.cls = nn.Linear(dim, n_classes)

    def empty(self):
        return torch.zeros(self.dim)

    def forward(self, bags, min_tissue=0.2):
        slides, maps = [], []
        for bag in bags:
            tissue = bag[bag.mean(1) > min_tissue]
            if len(tissue) == 0:           # nothing but glass
                slides.append(self.empty())
                maps.append(None)
                continue
            z, a = self.attn(self.embed(tissue))
            slides.append(z)
            maps.append(a)
        return self.cls(torch.stack(slides)), maps

# %%
mil = SlideClassifier().to(DEV)
good = [torch.rand(n, 6) + 0.2 for n in (5, 9)]
with torch.no_grad():
    print(mil([b.to(DEV) for b in good])[0].shape)        # fine for weeks

# %%
bags = [good[0], torch.full((4, 6), 0.01), good[1]]
with torch.no_grad():
    slide_logits, maps = mil([b.to(DEV) for b in bags])
