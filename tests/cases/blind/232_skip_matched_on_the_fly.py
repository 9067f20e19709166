# id = "232"
# cause = "module_built_in_forward"
# also_causes = ["fresh_tensor_no_device"]
# culprit = "conv1x1(skip.shape[1], x.shape[1])"
# also_culprit = ["adapt", "match(skip, x)", "layer"]
# culprit_cell = 1
# origin_cell = 1
# also_cells = [2]
# origin = "adapt = conv1x1(skip.shape[1], x.shape[1])"
# culprit_device = "HOST"
# other_device = "DEV"
# fail_cell = 3
# fix_site = "a user function in the traceback"
# visible = "first user frame"
# expect_after_fix = "mask.device == torch.device(DEV) and mask.shape == (1, 1, 8)"
# numbers = false
# # a random 1x1 layer per call is no good model; a right fix may make it in __init__, which draws other numbers
# [[ref_fix]]
# op = "replace"
# cell = 1
# old = "adapt = conv1x1(skip.shape[1], x.shape[1])"
# new = "adapt = conv1x1(skip.shape[1], x.shape[1]).to(skip.device)"
# [rerun]
# cells = [1, 2, 3]

# %%
import torch, torch.nn as nn, torch.nn.functional as F

def conv1x1(cin, cout):
    layer = nn.Conv1d(cin, cout, 1)
    nn.init.xavier_uniform_(layer.weight)
    return layer

def match(skip, x):
    """bring the skip connection to the channels and length of x"""
    if skip.shape[1] != x.shape[1]:
        adapt = conv1x1(skip.shape[1], x.shape[1])
        skip = adapt(skip)
    return F.interpolate(skip, size=x.shape[-1])

# %%
class UNet1d(nn.Module):
    def __init__(self, chans=(1, 4, 6)):
        super().__init__()
        self.down = nn.ModuleList(nn.Conv1d(a, b, 3, 2, 1) for a, b in zip(chans, chans[1:]))
        up = list(chans)[::-1]
        self.up = nn.ModuleList(nn.ConvTranspose1d(a, b, 2, 2) for a, b in zip(up, up[1:]))

    def forward(self, x):
        skips = []
        for d in self.down:
            skips.append(x)
            x = F.leaky_relu(d(x))
        for u, skip in zip(self.up, reversed(skips)):
            x = u(x)
            x = x + match(skip, x)
            skips.append(x)
        if self.training:
            x = x + match(skips[1], x)      # deep supervision
        return torch.sigmoid(x)

# %%
seg = UNet1d().to(DEV)
with torch.no_grad():
    mask = seg(torch.linspace(-1, 1, 8).view(1, 1, 8).to(DEV))
