# id = "117"
# cause = "plain_tensor_attribute"
# also_causes = []
# culprit = "self.mask"
# also_culprit = ["made.l1.mask", "made.l1", "self.l1", "self.l1.mask", "mask"]
# culprit_cell = 1
# origin_cell = 1
# also_cells = [2, 3, 4]
# origin = "self.mask = mask"
# culprit_device = "HOST"
# other_device = "DEV"
# fail_cell = 4
# fix_site = "class of the notebook"
# visible = "only in an object attribute"
# expect_after_fix = "nll.device == torch.device(DEV) and made.l1.weight.grad is not None"
# [[ref_fix]]
# op = "replace"
# cell = 1
# old = "self.mask = mask"
# new = "self.register_buffer('mask', mask)"
# [rerun]
# cells = [1, 2, 3, 4]

# %%
import torch
from torch import nn

class MaskedLinear(nn.Linear):
    def set_mask(self, mask):
        self.mask = mask
    def forward(self, x):
        return nn.functional.linear(x, self.weight * self.mask, self.bias)

# %%
class MADE(nn.Module):
    def __init__(self, n_in, hidden):
        super().__init__()
        self.l1, self.l2 = MaskedLinear(n_in, hidden), MaskedLinear(hidden, n_in)
        order = torch.arange(n_in)
        deg = torch.arange(hidden) % (n_in - 1)
        self.l1.set_mask((deg[:, None] >= order[None, :]).float())
        self.l2.set_mask((order[:, None] > deg[None, :]).float())
    def forward(self, x):
        return self.l2(torch.relu(self.l1(x)))

# %%
made = MADE(4, 10).to(DEV)

# %%
x = torch.rand(3, 4, device=DEV).round()
nll = nn.functional.binary_cross_entropy_with_logits(made(x), x)
nll.backward()
