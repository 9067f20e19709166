# id = "394"
# cause = "rnn_state"
# also_causes = ["fresh_tensor_no_device", "plain_tensor_attribute"]
# culprit = "self.left"
# also_culprit = ["net[0].left", "net[2].left", "layer.left", "left"]
# culprit_cell = 2
# origin_cell = 3
# also_cells = [4]
# origin = "layer.left = torch.zeros(batch, layer.in_channels, layer.context)"
# culprit_device = "HOST"
# other_device = "DEV"
# fail_cell = 5
# fix_site = "a function in an earlier cell"
# visible = "only in an object attribute"
# expect_after_fix = "clean.device == torch.device(DEV) and clean.shape == (1, 1, 64)"
# [[ref_fix]]
# op = "replace"
# cell = 3
# old = "torch.zeros(batch, layer.in_channels, layer.context)"
# new = "torch.zeros(batch, layer.in_channels, layer.context, device=layer.weight.device)"
# [rerun]
# cells = [3, 5]

# %%
import contextlib
import torch
import torch.nn.functional as F
from torch import nn

# %%
class CausalConv(nn.Conv1d):
    """looks to the left only; in streaming mode it remembers the end of the last chunk"""
    def __init__(self, cin, cout, k):
        super().__init__(cin, cout, k)
        self.context = k - 1
        self.left = None

    def forward(self, x):
        if self.left is None:
            return super().forward(F.pad(x, (self.context, 0)))
        x = torch.cat((self.left, x), dim=-1)
        self.left = x[..., -self.context:].detach()
        return super().forward(x)

# %%
@contextlib.contextmanager
def streaming(module, batch=1):
    convs = [m for m in module.modules() if isinstance(m, CausalConv)]
    for layer in convs:
        layer.left = torch.zeros(batch, layer.in_channels, layer.context)
    try:
        yield module
    finally:
        for layer in convs:
            layer.left = None

# %%
net = nn.Sequential(CausalConv(1, 6, 5), nn.ELU(), CausalConv(6, 1, 3)).to(DEV).eval()
whole = net(torch.sin(torch.arange(64.)).view(1, 1, -1).to(DEV))     # offline mode works

# %%
wave = torch.sin(torch.arange(64.)).view(1, 1, -1).to(DEV)
with torch.no_grad(), streaming(net) as denoise:
    clean = torch.cat([denoise(chunk) for chunk in wave.split(16, dim=-1)], dim=-1)
