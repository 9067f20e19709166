# id = "379"
# cause = "to_numpy"
# also_causes = []
# culprit = "scores"
# also_culprit = ["d.scores", "d", "model(images.to(cfg['device']))[0].scores"]
# culprit_cell = 1
# origin_cell = 4
# also_cells = [3, 4, 5]
# origin = "kept = soft_nms(d.boxes.cpu(), d.scores, floor=floor)"
# culprit_device = "DEV"
# other_device = "HOST"
# fail_cell = 5
# fix_site = "a function in an earlier cell"
# visible = "raising frame"
# expect_after_fix = "len(final) == 2 and all(b.shape[1] == 4 and len(b) >= 1 for b, s in final) and all(b.device == torch.device(DEV) for b, s in final) and all(len(b) == len(s) for b, s in final)"
# [[ref_fix]]
# op = "replace"
# cell = 4
# old = "d.scores, floor"
# new = "d.scores.cpu(), floor"
# [rerun]
# cells = [4, 5]

# %%
%%writefile softnms.py
import numpy as np


def iou(box, others):
    lt = np.maximum(box[:2], others[:, :2])
    rb = np.minimum(box[2:], others[:, 2:])
    inter = np.prod(np.clip(rb - lt, 0, None), axis=1)
    area = lambda b: (b[..., 2] - b[..., 0]) * (b[..., 3] - b[..., 1])
    return inter / (area(box) + area(others) - inter + 1e-9)


def soft_nms(boxes, scores, sigma=0.5, floor=0.05):
    boxes = np.array(boxes, dtype=np.float64)
    weight = np.array(scores, dtype=np.float64)
    left, kept = list(range(len(boxes))), []
    while left:
        best = max(left, key=weight.__getitem__)
        if weight[best] < floor:
            break
        kept.append(best)
        left.remove(best)
        if left:
            weight[left] *= np.exp(-iou(boxes[best], boxes[left]) ** 2 / sigma)
    return kept

# %%
import sys
from typing import NamedTuple
import torch
from torch import nn
if "" not in sys.path:
    sys.path.insert(0, "")
from softnms import soft_nms

# %%
class Dets(NamedTuple):
    boxes: torch.Tensor
    scores: torch.Tensor

class TinyDetector(nn.Module):
    def __init__(self, n=6):
        super().__init__()
        self.trunk = nn.Sequential(nn.Flatten(), nn.Linear(3 * 8 * 8, 32), nn.ReLU())
        self.box, self.score = nn.Linear(32, 4 * n), nn.Linear(32, n)

    def forward(self, images):
        h = self.trunk(images)
        c, wh = self.box(h).unflatten(1, (-1, 4)).sigmoid().split(2, -1)
        return [Dets(b, s) for b, s in zip(torch.cat([c - wh / 2, c + wh / 2], -1), self.score(h).sigmoid())]

cfg = dict(device=DEV, floor=0.3)
model = TinyDetector().to(cfg["device"]).eval()

# %%
@torch.inference_mode()
def detect(images, floor):
    out = []
    for d in model(images.to(cfg["device"])):
        kept = soft_nms(d.boxes.cpu(), d.scores, floor=floor)
        out.append(Dets(*(t[kept] for t in d)))
    return out

# %%
final = detect(torch.rand(2, 3, 8, 8), cfg["floor"])
