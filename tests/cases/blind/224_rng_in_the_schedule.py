# id = "224"
# cause = "generator_device"
# also_causes = []
# culprit = "self.rng"
# also_culprit = ["schedule.rng", "sched.rng", "generator", "make_rng(self.seed)", "torch.Generator().manual_seed(seed)"]
# culprit_cell = 2
# origin_cell = 1
# also_cells = [1, 3, 4]
# origin = "return torch.Generator().manual_seed(seed)"
# culprit_device = "HOST"
# other_device = "DEV"
# fail_cell = 4
# fix_site = "class of the notebook"
# visible = "raising frame"
# expect_after_fix = "image.device == torch.device(DEV) and torch.isfinite(image).all().item()"
# [[ref_fix]]
# op = "replace"
# cell = 2
# old = "torch.randn(shape, generator=self.rng, device=like.device)"
# new = "torch.randn(shape, generator=self.rng).to(like.device)"
# [rerun]
# cells = [2, 3, 4]

# %%
import math
from dataclasses import dataclass, field
import torch
from torch import nn

def make_rng(seed):
    return torch.Generator().manual_seed(seed)

# %% ancestral sampler
@dataclass
class Schedule:
    steps: int = 5
    seed: int = 1234
    rng: torch.Generator = field(init=False, repr=False)

    def __post_init__(self):
        self.rng = make_rng(self.seed)
        self.reset()

    def reset(self):
        self.rng.manual_seed(self.seed)

    def sigma(self, k):
        return math.sin(0.5 * math.pi * k / self.steps)

    def fresh(self, shape, like):
        return torch.randn(shape, generator=self.rng, device=like.device)

    def ancestral(self, x, eps, k):
        x0 = x - self.sigma(k) * eps
        if k == 1:
            return x0
        return x0 + self.sigma(k - 1) * self.fresh(x.shape, x)

# %%
class Pipe:
    def __init__(self, net, schedule):
        self.net, self.schedule = net.to(DEV).eval(), schedule

    @torch.no_grad()
    def __call__(self, size):
        self.schedule.reset()
        x = torch.full((1, 1, size, size), 0.3, device=DEV)
        for k in range(self.schedule.steps, 0, -1):
            x = self.schedule.ancestral(x, self.net(x), k)
        return x.clamp(-1, 1)

schedule = Schedule()
pipe = Pipe(nn.Conv2d(1, 1, 3, padding=1), schedule)

# %%
image = pipe(8)
