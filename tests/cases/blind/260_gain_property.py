# id = "260"
# cause = "plain_tensor_attribute"
# also_causes = []
# culprit = "self.scale"
# also_culprit = ["self._log_scale", "self._log_scale.exp()"]
# culprit_cell = 1
# origin_cell = 1
# also_cells = [2, 3, 4]
# origin = "self._log_scale = torch.zeros(width) + init"
# culprit_device = "HOST"
# other_device = "DEV"
# fail_cell = 4
# fix_site = "class __init__"
# visible = "only in an object attribute (behind a property)"
# expect_after_fix = "hidden.device == torch.device(DEV) and hidden.shape == (2, 3, 8)"
# [[ref_fix]]
# op = "replace"
# cell = 1
# old = "self._log_scale = torch.zeros(width) + init"
# new = "self.register_buffer('_log_scale', torch.zeros(width) + init)"
# [rerun]
# cells = [1, 2, 3, 4]

# %%
import torch
from torch import nn
from torch.nn import functional as F

class FixedScaleNorm(nn.Module):
    """LayerNorm whose scale is not learned (eq. 7); kept in log space."""
    def __init__(self, width, init=-0.7):
        super().__init__()
        self.width = (width,)
        self.bias = nn.Parameter(torch.zeros(width))
        self._log_scale = torch.zeros(width) + init

    @property
    def scale(self):
        return self._log_scale.exp()

    def forward(self, x):
        return F.layer_norm(x, self.width, self.scale, self.bias)

# %%
class Residual(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm, self.fn = FixedScaleNorm(width), nn.Linear(width, width)
    def forward(self, x):
        return x + self.fn(self.norm(x))

# %%
def build(depth, width):
    return nn.Sequential(*(Residual(width) for _ in range(depth)))

trunk = build(depth=3, width=8)
print(sum(p.numel() for p in trunk.parameters()), "parameters")
trunk.to(DEV)

# %%
tokens = torch.randn(2, 3, 8, device=DEV)
hidden = trunk(tokens)
