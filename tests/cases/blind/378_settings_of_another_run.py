# id = "378"
# cause = "hardcoded_device"
# also_causes = []
# culprit = "hole"
# also_culprit = ["self._hole(h, w)", "m", "torch.ones(h, w, device=self.device)"]
# culprit_cell = 3
# origin_cell = 1
# also_cells = [2, 4]
# origin = "DEVICE = os.environ.get('SEG_DEVICE', 'cuda:0')"
# culprit_device = "DEV"
# other_device = "DEV2"
# fail_cell = 5
# fix_site = "class of the notebook"
# visible = "raising frame"
# expect_after_fix = "logits.device == torch.device(DEV2) and bool((masked == 0).any())"
# # needs DEV = 'cuda:0'; a fix that leaves a literal card in use cannot run on the host
# needs = "DEV2"
# [[ref_fix]]
# op = "replace"
# cell = 3
# old = "hole = self._hole(h, w)"
# new = "hole = self._hole(h, w).to(images.device)"
# [rerun]
# cells = [3, 4, 5]

# %%
%%writefile seg_settings.py
import os
from dataclasses import dataclass

DEVICE = os.environ.get('SEG_DEVICE', 'cuda:0')
CLASSES = 4


@dataclass
class AugmentConfig:
    size: int = 3
    p: float = 1.0
    device: str = DEVICE

# %%
import os, sys
import torch
from torch import nn

if "" not in sys.path:
    sys.path.insert(0, "")
import seg_settings as S

device = os.environ.get("MY_CARD") or DEV2      # the first card is taken until Friday

# %%
class Cutout:
    def __init__(self, cfg=None):
        cfg = cfg or S.AugmentConfig()
        self.__dict__.update(vars(cfg))

    def _hole(self, h, w):
        m = torch.ones(h, w, device=self.device)
        m[: self.size, : self.size] = 0
        return m

    def __call__(self, images):
        h, w = images.shape[-2:]
        hole = self._hole(h, w)
        return images * hole

class Segmenter(nn.Module):
    def __init__(self, n_classes=S.CLASSES):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.ReLU(), nn.Conv2d(8, n_classes, 1))

    def forward(self, x):
        return self.body(x)

# %%
net = Segmenter().to(device)
aug = Cutout()
loader = [torch.rand(2, 3, 8, 8) for _ in range(2)]

# %%
for images in loader:
    masked = aug(images.to(device))
    logits = net(masked)
