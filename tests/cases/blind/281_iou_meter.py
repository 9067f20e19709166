# id = "281"
# cause = "metric_state"
# also_causes = ["plain_tensor_attribute"]
# culprit = "self.counts"
# also_culprit = ["meter.counts", "meter", "meters['val'].counts", "meters['val']", "self.counts.view(-1)"]
# culprit_cell = 2
# origin_cell = 2
# also_cells = [3, 4, 5]
# origin = "self.counts = torch.zeros(self.k, self.k, dtype=torch.long)"
# culprit_device = "HOST"
# other_device = "DEV"
# fail_cell = 5
# fix_site = "class of the notebook"
# visible = "only in an object attribute"
# expect_after_fix = "all(0.0 <= v <= 1.0 for v in scores) and int(meters['val'].counts.sum()) == 64"
# [[ref_fix]]
# op = "replace"
# cell = 2
# old = "joint = (truth[keep] * self.k + guess[keep])"
# new = "joint = (truth[keep] * self.k + guess[keep]).to(self.counts.device)"
# [rerun]
# cells = [2, 3, 5]

# %%
import torch
from torch import nn

# %%
class IoU:
    """mean intersection over union, pixels labelled 255 are ignored"""
    def __init__(self, k):
        self.k = k
        self.reset()

    def reset(self):
        self.counts = torch.zeros(self.k, self.k, dtype=torch.long)

    def __call__(self, guess, truth):
        keep = truth != 255
        joint = (truth[keep] * self.k + guess[keep])
        self.counts.view(-1).scatter_add_(0, joint, torch.ones_like(joint))

    @property
    def value(self):
        inter = self.counts.diagonal()
        union = self.counts.sum(0) + self.counts.sum(1) - inter
        return (inter / union.clamp(min=1)).mean().item()

# %%
meters = {split: IoU(3) for split in ("train", "val")}

# %%
segnet = nn.Conv2d(3, 3, 3, padding=1).to(DEV)

def validate(net, batches, meter):
    meter.reset()
    with torch.no_grad():
        for img, truth in batches:
            meter(net(img).argmax(1), truth)
            yield meter.value

# %%
val = [(torch.rand(1, 3, 8, 4, device=DEV), torch.randint(0, 3, (1, 8, 4), device=DEV)) for _ in range(2)]
scores = list(validate(segnet, val, meters["val"]))
