# id = "258"
# cause = "model_not_moved"
# also_causes = []
# culprit = "net"
# also_culprit = ["block", "vgg_like", "objective.terms['feat'][1].keywords['net']", "f.keywords['net']"]
# culprit_cell = 3
# origin_cell = 2
# also_cells = [4]
# origin = "vgg_like = frozen(nn.Sequential("
# culprit_device = "HOST"
# other_device = "DEV"
# fail_cell = 5
# fix_site = "an earlier cell"
# visible = "only in an object attribute (a layer of a network bound in a partial)"
# expect_after_fix = "total.device == torch.device(DEV) and next(generator.parameters()).grad.device == torch.device(DEV)"
# [[ref_fix]]
# op = "run"
# code = "vgg_like.to(DEV)"

# %%
from functools import partial
import torch
from torch import nn
import torch.nn.functional as F

# %%
def frozen(m):
    return m.requires_grad_(False).eval()

# stand-in for vgg16.features[:16]
vgg_like = frozen(nn.Sequential(
    nn.Conv2d(3, 4, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
    nn.Conv2d(4, 8, 3, padding=1), nn.ReLU()))

# %%
def perceptual(fake, real, *, net, taps=(1, 4)):
    """L1 between activations after the tapped layers"""
    out = fake.new_zeros(())
    for i, block in enumerate(net):
        fake, real = block(fake), block(real)
        if i in taps:
            out = out + F.l1_loss(fake, real)
    return out

class Weighted:
    def __init__(self, **terms):
        self.terms = terms                      # name -> (weight, callable)
    def __call__(self, fake, real):
        return sum(w * f(fake, real) for w, f in self.terms.values() if w)

# %%
objective = Weighted(pixel=(1.0, F.mse_loss), feat=(0.1, partial(perceptual, net=vgg_like)))
generator = nn.Sequential(nn.Conv2d(3, 4, 1), nn.GELU(), nn.Conv2d(4, 3, 1)).to(DEV)

# %%
lowres, highres = torch.rand(2, 2, 3, 8, 8, device=DEV)
generator.zero_grad()
total = objective(generator(lowres), highres)
total.backward()
