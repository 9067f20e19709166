# id = "353"
# cause = "hardcoded_device"
# also_causes = []
# culprit = "target_onehot"
# also_culprit = ["make_one_hot(target, logits.shape[1])", "make_one_hot(target, n_classes)"]
# culprit_cell = 3
# origin_cell = 2
# also_cells = []
# origin = "result = torch.zeros(shape).cuda()"
# culprit_device = "DEV"
# other_device = "DEV2"
# fail_cell = 5
# fix_site = "a function in an earlier cell"
# visible = "raising frame"
# expect_after_fix = "val_dice.device == torch.device(DEV2)"
# needs = "DEV2"
# # a fix that keeps .cuda() cannot run on the host
# [[ref_fix]]
# op = "replace"
# cell = 2
# old = "    result = torch.zeros(shape).cuda()\n    return result.scatter_(1, labels.unsqueeze(1).cuda(), 1)"
# new = "    result = torch.zeros(shape, device=labels.device)\n    return result.scatter_(1, labels.unsqueeze(1), 1)"
# [rerun]
# cells = [2, 3, 5]

# %%
import torch
import torch.nn as nn

# %%
# utils.py of the lab (do not touch!!)
def make_one_hot(labels, num_classes):
    """N x H x W -> N x C x H x W"""
    shape = (labels.shape[0], num_classes) + tuple(labels.shape[1:])
    result = torch.zeros(shape).cuda()
    return result.scatter_(1, labels.unsqueeze(1).cuda(), 1)

# %%
class DiceLoss(nn.Module):
    def __init__(self, smooth=1., ignore_background=False):
        super().__init__()
        self.smooth, self.first = smooth, int(ignore_background)

    def forward(self, logits, target):
        prob = logits.softmax(1)
        target_onehot = make_one_hot(target, logits.shape[1])
        dims = (0, 2, 3)
        inter = (prob * target_onehot).sum(dims)
        union = prob.sum(dims) + target_onehot.sum(dims)
        dice = (2 * inter + self.smooth) / (union + self.smooth)
        return 1 - dice[self.first:].mean()

# %%
# card 0 is busy with the long run, use the other one
device = torch.device(DEV2)
segnet = nn.Sequential(nn.Conv2d(1, 6, 3, padding=1), nn.ReLU(), nn.Conv2d(6, 3, 1)).to(device)
dice_loss = DiceLoss(ignore_background=True)

# %%
scans = torch.rand(2, 1, 8, 8)
masks = torch.randint(0, 3, (2, 8, 8))
with torch.no_grad():
    val_dice = dice_loss(segnet(scans.to(device)), masks.to(device))
