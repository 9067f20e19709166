# id = "108"
# cause = "fresh_tensor_no_device"
# also_causes = []
# culprit = "torch.eye(N_CLASSES)"
# also_culprit = []
# culprit_cell = 2
# origin_cell = 2
# also_cells = []
# origin = "onehot = torch.eye(N_CLASSES)[target]"
# culprit_device = "HOST"
# other_device = "DEV"
# fail_cell = 4
# fix_site = "forward"
# visible = "not in any frame"
# expect_after_fix = "loss.device == torch.device(DEV)"
# # the message speaks of the indices, but they are where they belong
# [[ref_fix]]
# op = "replace"
# cell = 2
# old = "torch.eye(N_CLASSES)[target]"
# new = "torch.eye(N_CLASSES, device=target.device)[target]"
# [rerun]
# cells = [2, 3, 4]

# %%
import torch
from torch import nn
import torch.nn.functional as F

N_CLASSES = 4

# %%
class DiceLoss(nn.Module):
    def forward(self, logits, target, eps=1e-6):
        p = logits.softmax(1)
        onehot = torch.eye(N_CLASSES)[target]
        inter = (p * onehot).sum(0)
        return 1 - (2 * inter / (p.sum(0) + onehot.sum(0) + eps)).mean()

# %%
seg = nn.Linear(7, N_CLASSES).to(DEV)
dice = DiceLoss()
batch = torch.randn(9, 7).to(DEV), torch.randint(0, N_CLASSES, (9,)).to(DEV)

# %%
pixels, target = batch
loss = F.cross_entropy(seg(pixels), target) + dice(seg(pixels), target)
