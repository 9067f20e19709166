# id = "386"
# cause = "module_added_after_move"
# also_causes = ["model_not_moved"]
# culprit = "stage"
# also_culprit = ["self.stages[-1]", "self.stages[1]", "gen.stages[1]", "gen.stages[-1]", "gen.stages[1].conv", "gen.stages[1].conv.weight", "self.conv", "self.conv.weight", "self", "trainer.gen.stages[1]", "self.gen.stages[1]"]
# culprit_cell = 2
# origin_cell = 2
# also_cells = [1, 3, 4, 5, 6]
# origin = "stage = Stage(last.conv.out_channels, max(last.conv.out_channels // 2, 2))"
# culprit_device = "HOST"
# other_device = "DEV"
# fail_cell = 6
# fix_site = "another method of a user class"
# visible = "only in an object attribute"
# expect_after_fix = "len(gen.stages) == 2 and all(p.device == torch.device(DEV) for p in gen.parameters()) and gen.stages[1].conv.weight.grad is not None and trainer.sizes == [8, 8, 16]"
# [[ref_fix]]
# op = "run"
# code = "gen.to(DEV)"

# %%
import torch
from torch import nn
import torch.nn.functional as F

class Stage(nn.Module):
    def __init__(self, c_in, c_out):
        super().__init__()
        self.conv = nn.Conv2d(c_in, c_out, 3, padding=1)
        self.rgb = nn.Conv2d(c_out, 3, 1)

    def forward(self, x):
        return F.leaky_relu(self.conv(F.interpolate(x, scale_factor=2.0)), 0.2)

# %%
class Generator(nn.Module):
    def __init__(self, z=4, width=8):
        super().__init__()
        self.start = nn.Linear(z, width * 16)
        self.stages = nn.ModuleList([Stage(width, width)])
        self.fade = 1.0

    def forward(self, z):
        x = self.start(z).view(len(z), -1, 4, 4)
        img = None
        for stage in self.stages:
            x = stage(x)
            new = stage.rgb(x)
            img = new if img is None else torch.lerp(F.interpolate(img, scale_factor=2.0), new, self.fade)
        return img.tanh()

    def grow(self):
        last = self.stages[-1]
        stage = Stage(last.conv.out_channels, max(last.conv.out_channels // 2, 2))
        self.stages.append(stage)
        self.fade = 0.3
        return stage

# %%
class GrowEvery:
    def __init__(self, phases):
        self.phases = set(phases)

    def before_phase(self, trainer, k):
        if k in self.phases:
            trainer.opt.add_param_group({"params": trainer.gen.grow().parameters()})

class Trainer:
    def __init__(self, gen, critic, device, callbacks):
        self.gen, self.critic, self.device, self.callbacks = gen.to(device), critic.to(device), device, callbacks
        self.opt = torch.optim.SGD(gen.parameters(), lr=0.05)
        self.sizes = []

    def begin(self, k):
        for cb in self.callbacks:
            cb.before_phase(self, k)

    def step(self):
        fake = self.gen(torch.randn(3, 4, device=self.device))
        loss = F.softplus(-self.critic(F.adaptive_avg_pool2d(fake, 4).flatten(1))).mean()
        self.opt.zero_grad(); loss.backward(); self.opt.step()
        self.sizes.append(fake.shape[-1])

# %%
gen = Generator()
trainer = Trainer(gen, nn.Linear(48, 1), DEV, [GrowEvery({1})])
for _ in range(2):
    trainer.step()

# %%
trainer.begin(1)

# %%
trainer.step()
