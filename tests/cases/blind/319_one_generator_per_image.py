# id = "319"
# cause = "generator_device"
# also_causes = []
# culprit = "g"
# also_culprit = ["generator", "generator[0]", "generators", "generators[0]"]
# culprit_cell = 2
# origin_cell = 4
# also_cells = [3, 5]
# origin = "return [torch.Generator().manual_seed(s) for s in seeds]"
# culprit_device = "HOST"
# other_device = "DEV"
# fail_cell = 5
# fix_site = "a function in an earlier cell"
# visible = "raising frame"
# expect_after_fix = "images.device == torch.device(DEV) and images.shape == (3, 1, 4, 4)"
# [[ref_fix]]
# op = "replace"
# cell = 4
# old = "torch.Generator()"
# new = "torch.Generator(device=pipe.device)"
# [rerun]
# cells = [4, 5]

# %%
import torch
from torch import nn

# %%
def randn_tensor(shape, generator=None, device=None):
    if isinstance(generator, (list, tuple)):
        one = (1,) + tuple(shape[1:])
        return torch.cat([torch.randn(one, generator=g, device=device) for g in generator])
    return torch.randn(shape, generator=generator, device=device)

# %%
class TextToImagePipeline:
    def __init__(self, unet, vae_decoder):
        self.components = {'unet': unet, 'vae': vae_decoder}

    @property
    def device(self):
        return next(self.components['unet'].parameters()).device

    def to(self, device):
        for m in self.components.values():
            m.to(device)
        return self

    @torch.no_grad()
    def __call__(self, prompt, steps=2, generator=None):
        n = len(prompt)
        latents = randn_tensor((n, 3), generator=generator, device=self.device)
        for t in range(steps, 0, -1):
            latents = latents - self.components['unet'](latents) / (t + 1)
        return self.components['vae'](latents).view(n, 1, 4, 4)

pipe = TextToImagePipeline(nn.Linear(3, 3), nn.Linear(3, 16)).to(DEV)
_ = pipe(["warm up"])

# %%
def reproducible(seeds):
    return [torch.Generator().manual_seed(s) for s in seeds]

# %%
generators = reproducible([11, 12, 13])
images = pipe(["a cat", "a dog", "a fox"], generator=generators)
