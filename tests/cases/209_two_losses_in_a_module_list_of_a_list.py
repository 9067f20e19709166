# id = "209"
# cause = "module_in_plain_container"
# also_causes = ["loss_weight"]
# culprit = "ls"
# also_culprit = ["self.losses", "ls.weight", "ms.losses", "ms.losses[0]", "self.losses[0].weight", "ms.losses[0].weight"]
# culprit_cell = 1
# origin_cell = 1
# also_cells = [2, 3]
# origin = "self.losses = [nn.CrossEntropyLoss(weight=class_w * s) for s in scales]"
# culprit_device = "HOST"
# other_device = "DEV"
# fail_cell = 3
# fix_site = "class __init__"
# visible = "only in an object attribute"
# expect_after_fix = "l.device == torch.device(DEV)"
# [[ref_fix]]
# op = "replace"
# cell = 1
# old = "[nn.CrossEntropyLoss(weight=class_w * s) for s in scales]"
# new = "nn.ModuleList(nn.CrossEntropyLoss(weight=class_w * s) for s in scales)"
# [rerun]
# cells = [1, 2, 3]

# %%
import torch
from torch import nn

class MultiScale(nn.Module):
    """a loss for each scale, with weights of its own"""
    def __init__(self, class_w, scales=(1, 2)):
        super().__init__()
        self.scales = scales
        self.losses = [nn.CrossEntropyLoss(weight=class_w * s) for s in scales]
        self.mix = nn.Parameter(torch.ones(len(scales)))

    def forward(self, logits, target):
        parts = [ls(logits / s, target) for ls, s in zip(self.losses, self.scales)]
        return (torch.stack(parts) * self.mix.softmax(0)).sum()

# %%
ms = MultiScale(torch.tensor([1.0, 2.0, 0.5])).to(DEV)
seg_head = nn.Conv1d(2, 3, 1).to(DEV)

# %%
x, t = torch.randn(2, 2, 7), torch.randint(3, (2, 7))
l = ms(seg_head(x.to(DEV)), t.to(DEV))
