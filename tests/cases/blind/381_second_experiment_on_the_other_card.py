# id = "381"
# cause = "default_device_global"
# also_causes = ["fresh_tensor_no_device"]
# culprit = "xs"
# also_culprit = ["ys", "torch.linspace(-1, 1, h)", "torch.linspace(-1, 1, w)"]
# culprit_cell = 2
# origin_cell = 4
# also_cells = [4, 5]
# origin = "torch.set_default_device(DEV2)"
# culprit_device = "DEV2"
# other_device = "DEV"
# fail_cell = 5
# fix_site = "forward"
# visible = "raising frame"
# expect_after_fix = "sorted(errors) == ['heavy', 'light'] and found['light'].device == torch.device(DEV) and found['heavy'].device == torch.device(DEV2)"
# needs = "DEV2"
# [[ref_fix]]
# op = "replace"
# cell = 2
# old = "ys, xs = torch.linspace(-1, 1, h), torch.linspace(-1, 1, w)"
# new = "ys, xs = torch.linspace(-1, 1, h, device=maps.device), torch.linspace(-1, 1, w, device=maps.device)"
# [rerun]
# cells = [2, 5]

# %%
import torch
from torch import nn

torch.set_default_device(DEV)

# %%
def soft_argmax(maps):
    """(B, K, H, W) heat -> (B, K, 2) positions"""
    h, w = maps.shape[-2:]
    p = maps.flatten(2).softmax(-1).view_as(maps)
    ys, xs = torch.linspace(-1, 1, h), torch.linspace(-1, 1, w)
    return torch.stack([(p.sum(2) * xs).sum(-1), (p.sum(3) * ys).sum(-1)], -1)

class PoseNet(nn.Module):
    def __init__(self, width, joints=3):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(1, width, 3, padding=1), nn.ReLU(), nn.Conv2d(width, joints, 1))

    def forward(self, x):
        return soft_argmax(self.body(x))

class Run:
    def __init__(self, name, width):
        self.name, self.net = name, PoseNet(width)
        self.device = torch.get_default_device()
        self.opt = torch.optim.SGD(self.net.parameters(), lr=0.1)

    def train(self, steps=2):
        for _ in range(steps):
            x, y = torch.rand(4, 1, 8, 8), torch.rand(4, 3, 2)
            loss = (self.net(x) - y).abs().mean()
            self.opt.zero_grad(); loss.backward(); self.opt.step()
        return self

    @torch.no_grad()
    def predict(self, x):
        return self.net(x.to(self.device))

# %%
light = Run("light", 4).train()

# %%
# the other card is idle: a wider net there
torch.set_default_device(DEV2)
heavy = Run("heavy", 8).train()

# %%
val, truth = torch.rand(5, 1, 8, 8), torch.rand(5, 3, 2)
found, errors = {}, {}
for run in (light, heavy):
    found[run.name] = run.predict(val)
    errors[run.name] = float((found[run.name].cpu() - truth.cpu()).abs().mean())
