# id = "382"
# cause = "model_not_moved"
# also_causes = []
# culprit = "self.depth"
# also_culprit = ["pipe.depth", "pipe.depth.conv", "pipe.depth.conv.weight", "self.depth.conv.weight", "self.conv", "self.conv.weight"]
# culprit_cell = 4
# origin_cell = 4
# also_cells = [2, 3, 5]
# origin = "self.depth = depth"
# culprit_device = "HOST"
# other_device = "DEV"
# fail_cell = 5
# fix_site = "class of the notebook"
# visible = "only in an object attribute"
# expect_after_fix = "image.device == torch.device(HOST) and image.shape == (1, 3, 8, 8) and next(pipe.depth.parameters()).device == torch.device(DEV)"
# [[ref_fix]]
# op = "replace"
# cell = 4
# old = "    conditioned = True"
# new = "    conditioned = True\n    parts = LatentPipeline.parts + ('depth',)"
# [rerun]
# cells = [4, 5]

# %%
import torch
from torch import nn

# %%
class LatentPipeline:
    """no Module itself, as in the libraries"""
    parts = ("vae", "unet")
    conditioned = False

    def __init__(self, vae, unet):
        self.vae, self.unet = vae, unet
        self.device = torch.device("cpu")

    def to(self, device):
        for name in self.parts:
            getattr(self, name).to(device)
        self.device = torch.device(device)
        return self

    def condition(self, image):
        return None

    @torch.no_grad()
    def __call__(self, image, steps=3):
        image = image.to(self.device)
        extra = self.condition(image)
        z = self.vae.encode(image)
        for i in range(steps):
            z = z - 0.2 * self.unet(z if extra is None else torch.cat([z, extra], 1))
        return self.vae.decode(z).clamp(0, 1).cpu()

# %%
class VAE(nn.Module):
    def __init__(self, ch=4):
        super().__init__()
        self.down, self.up = nn.Conv2d(3, ch, 2, stride=2), nn.ConvTranspose2d(ch, 3, 2, stride=2)
    def encode(self, x):
        return self.down(x)
    def decode(self, z):
        return self.up(z)

class Depth(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 1, 3, stride=2, padding=1)
    def forward(self, x):
        d = self.conv(x)
        return (d - d.mean()) / (d.std() + 1e-6)

# %%
class DepthPipeline(LatentPipeline):
    conditioned = True

    def __init__(self, vae, unet, depth):
        super().__init__(vae, unet)
        self.depth = depth

    def condition(self, image):
        return self.depth(image)

plain = LatentPipeline(VAE(), nn.Conv2d(4, 4, 3, padding=1)).to(DEV)
plain(torch.rand(1, 3, 8, 8))

# %%
pipe = DepthPipeline(VAE(), nn.Conv2d(5, 4, 3, padding=1), Depth()).to(DEV)
image = pipe(torch.rand(1, 3, 8, 8))
