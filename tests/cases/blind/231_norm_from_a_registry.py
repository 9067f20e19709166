# id = "231"
# cause = "module_built_in_forward"
# also_causes = ["fresh_tensor_no_device"]
# culprit = "norm"
# also_culprit = ["NORMS[self.kind](h.shape[1])"]
# culprit_cell = 3
# origin_cell = 3
# also_cells = [2]
# origin = "norm = NORMS[self.kind](h.shape[1])"
# culprit_device = "HOST"
# other_device = "DEV"
# fail_cell = 4
# fix_site = "forward"
# visible = "first user frame"
# expect_after_fix = "len(outs) == 2 and all(o.device == torch.device(DEV) for o in outs)"
# [[ref_fix]]
# op = "replace"
# cell = 3
# old = "norm = NORMS[self.kind](h.shape[1])"
# new = "norm = NORMS[self.kind](h.shape[1]).to(h.device)"
# [rerun]
# cells = [3, 4]

# %%
import torch
from torch import nn
from torch.nn import functional as F

# %% which norm is best? (homework 3, part c)
NORMS = {
    'none': lambda c: nn.Identity(),
    'group': lambda c: nn.GroupNorm(2, c),
    'instance': lambda c: nn.InstanceNorm2d(c, affine=True),
}

# %%
class ResBlock(nn.Module):
    def __init__(self, c, kind):
        super().__init__()
        self.c1, self.c2 = (nn.Conv2d(c, c, 3, padding=1) for _ in range(2))
        self.kind = kind

    def normed(self, h):
        norm = NORMS[self.kind](h.shape[1])
        return norm(h)

    def forward(self, x):
        h = F.relu(self.normed(self.c1(x)))
        return x + self.normed(self.c2(h))

# %%
img = torch.linspace(0, 1, 4 * 36).reshape(1, 4, 6, 6)
outs = []
for kind in ('none', 'group'):
    torch.manual_seed(3)
    block = ResBlock(4, kind).to(DEV)
    outs.append(block(img.to(DEV)).detach())
    print(kind, outs[-1].std().item())
