# id = "326"
# cause = "ema_shadow"
# also_causes = ["model_not_moved"]
# culprit = "ema.module"
# also_culprit = ["ema", "self.module", "e", "ema_v", "callbacks['ema'].module", "callbacks['ema']"]
# culprit_cell = 2
# origin_cell = 4
# also_cells = [6]
# origin = "callbacks = {'ema': ModelEma(net, decay=0.9)}"
# culprit_device = "HOST"
# other_device = "DEV"
# fail_cell = 6
# fix_site = "earlier cell"
# visible = "raising frame"
# expect_after_fix = "all(v.device == torch.device(DEV) for v in ema.module.state_dict().values()) and smooth.device == torch.device(DEV)"
# [[ref_fix]]
# op = "run"
# code = "callbacks['ema'].module.to(DEV)"

# %%
import torch
from torch import nn
from copy import deepcopy

# %%
class ModelEma:
    """keeps a smoothed copy of everything in the state_dict"""
    def __init__(self, model, decay=0.999):
        self.module = deepcopy(model).eval()
        self.decay = decay
        for p in self.module.parameters():
            p.requires_grad_(False)

    @torch.no_grad()
    def _update(self, model, fn):
        for ema_v, v in zip(self.module.state_dict().values(), model.state_dict().values()):
            ema_v.copy_(fn(ema_v, v))

    def update(self, model):
        self._update(model, lambda e, m: self.decay * e + (1 - self.decay) * m)

    def set(self, model):
        self._update(model, lambda e, m: m)

# %%
def make_net(depth=2, width=8):
    layers = []
    for _ in range(depth):
        layers += [nn.LazyLinear(width), nn.BatchNorm1d(width), nn.SiLU()]
    return nn.Sequential(*layers, nn.LazyLinear(3))

# %%
net = make_net()
net(torch.zeros(2, 5))                 # lazy layers want to see one batch
callbacks = {'ema': ModelEma(net, decay=0.9)}

# %%
net.to(DEV)
sgd = torch.optim.SGD(net.parameters(), lr=0.1)
x, y = torch.randn(12, 5, device=DEV), torch.randint(0, 3, (12,), device=DEV)
nn.functional.cross_entropy(net(x), y).backward()
sgd.step()

# %%
ema = callbacks['ema']
ema.update(net)
with torch.no_grad():
    smooth = ema.module(x)
