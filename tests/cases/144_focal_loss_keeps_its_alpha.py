# id = "144"
# cause = "plain_tensor_attribute"
# also_causes = ["loss_weight"]
# culprit = "self.alpha"
# also_culprit = ["focal.alpha", "focal"]
# culprit_cell = 1
# origin_cell = 1
# also_cells = [2, 3]
# origin = "self.alpha = torch.tensor(alpha)"
# culprit_device = "HOST"
# other_device = "DEV"
# fail_cell = 3
# fix_site = "class __init__"
# visible = "only in an object attribute"
# expect_after_fix = "fl.device == torch.device(DEV)"
# # the message names the index: it is where it belongs, the table is not
# [[ref_fix]]
# op = "replace"
# cell = 1
# old = "self.alpha = torch.tensor(alpha)"
# new = "self.register_buffer('alpha', torch.tensor(alpha))"
# [rerun]
# cells = [1, 2, 3]

# %%
import torch
from torch import nn

class FocalLoss(nn.Module):
    def __init__(self, alpha, gamma=2.0):
        super(FocalLoss, self).__init__()
        if isinstance(alpha, list):
            self.alpha = torch.tensor(alpha)
        self.gamma = gamma

    def forward(self, inputs, targets):
        logp = torch.log_softmax(inputs, dim=-1)
        at = self.alpha.gather(0, targets.view(-1))
        logpt = logp.gather(1, targets.view(-1, 1)).view(-1)
        return (-at * (1 - logpt.exp()) ** self.gamma * logpt).mean()

# %%
net = nn.Linear(4, 3).to(DEV)
focal = FocalLoss(alpha=[.2, .3, .5]).to(DEV)
feats, tgts = torch.randn(6, 4), torch.tensor([0, 1, 2, 0, 1, 2])

# %%
feats, tgts = feats.to(DEV), tgts.to(DEV)
fl = focal(net(feats), tgts); fl.backward()
