# id = "240"
# cause = "no_accelerator"
# also_causes = ["hardcoded_device"]
# culprit = ""
# also_culprit = []
# culprit_cell = 3
# origin_cell = 1
# also_cells = [1, 2, 4]
# origin = "BACKENDS = {'server': DEV, 'laptop': 'xpu', 'ci': HOST}"
# culprit_device = "none"
# other_device = "none"
# fail_cell = 4
# fix_site = "earlier cell"
# visible = "only in an object attribute"
# expect_after_fix = "probs.device == next(demo.net.parameters()).device and probs.shape == (2, 3) and probs.device.type in (torch.device(DEV).type, 'cpu')"
# numbers = false
# # a right fix may name the card as a literal, which an all-CPU run does not have
# [[ref_fix]]
# op = "replace"
# cell = 2
# old = "machine: str = 'laptop'"
# new = "machine: str = 'server'"
# [rerun]
# cells = [2, 3, 4]

# %%
import torch
from torch import nn

BACKENDS = {'server': DEV, 'laptop': 'xpu', 'ci': HOST}

# %%
from dataclasses import dataclass

@dataclass
class Settings:
    machine: str = 'laptop'
    n_classes: int = 3
    half: bool = False

    @property
    def device(self):
        return BACKENDS[self.machine]

    @property
    def dtype(self):
        return torch.bfloat16 if self.half else torch.float32

# %%
class Demo:
    labels = ('cat', 'dog', 'owl')

    def __init__(self, settings):
        self.settings = settings
        self.net = nn.Sequential(nn.Flatten(), nn.Linear(12, settings.n_classes))

    def load(self):
        self.net.to(device=self.settings.device, dtype=self.settings.dtype)
        return self

    @torch.inference_mode()
    def __call__(self, images):
        images = images.to(self.settings.device, self.settings.dtype)
        return self.net(images).softmax(-1)

# %%
demo = Demo(Settings()).load()
probs = demo(torch.rand(2, 3, 2, 2))
print([Demo.labels[i] for i in probs.argmax(-1).tolist()])
