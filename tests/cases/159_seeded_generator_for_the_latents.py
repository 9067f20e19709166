# id = "159"
# cause = "generator_device"
# also_causes = []
# culprit = "generator"
# also_culprit = ["g"]
# culprit_cell = 2
# origin_cell = 3
# also_cells = []
# origin = "g = torch.Generator().manual_seed(42)"
# culprit_device = "HOST"
# other_device = "DEV"
# fail_cell = 3
# fix_site = "cell line that failed"
# visible = "raising frame"
# expect_after_fix = "images.device == torch.device(DEV)"
# [[ref_fix]]
# op = "replace"
# cell = 3
# old = "torch.Generator()"
# new = "torch.Generator(device)"

# %%
import torch
from torch import nn
device = torch.device(DEV)
unet = nn.Linear(4, 4).to(device)

# %%
class Pipeline:
    def __init__(self, unet):
        self.unet = unet
    def prepare_latents(self, n, generator=None):
        return torch.randn((n, 4), generator=generator, device=device)
    @torch.no_grad()
    def __call__(self, n=1, steps=2, generator=None):
        x = self.prepare_latents(n, generator)
        for _ in range(steps):
            x = x - 0.1 * self.unet(x)
        return {"images": x}

# %%
pipe = Pipeline(unet)
g = torch.Generator().manual_seed(42)
images = pipe(2, generator=g)["images"]
