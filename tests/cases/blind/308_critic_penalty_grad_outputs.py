# id = "308"
# cause = "fresh_tensor_no_device"
# also_causes = []
# culprit = "torch.ones(scores.size())"
# also_culprit = ["grad_outputs=torch.ones(scores.size())"]
# culprit_cell = 3
# origin_cell = 3
# also_cells = []
# origin = "grad_outputs=torch.ones(scores.size()),"
# culprit_device = "HOST"
# other_device = "DEV"
# fail_cell = 4
# fix_site = "a function in an earlier cell"
# visible = "first user frame"
# expect_after_fix = "d_loss.device == torch.device(DEV)"
# [[ref_fix]]
# op = "replace"
# cell = 3
# old = "torch.ones(scores.size())"
# new = "torch.ones_like(scores)"
# [rerun]
# cells = [3, 4]

# %%
import torch
import torch.nn as nn
from torch import autograd

Z_DIM, LAMBDA = 5, 10

# %%
class Critic(nn.Module):
    def __init__(self):
        super().__init__()
        self.main = nn.Sequential(nn.Linear(2, 16), nn.LeakyReLU(0.2), nn.Linear(16, 1))
    def forward(self, x):
        return self.main(x)

class Generator(nn.Module):
    def __init__(self):
        super().__init__()
        self.main = nn.Sequential(nn.Linear(Z_DIM, 16), nn.ReLU(), nn.Linear(16, 2))
    def forward(self, z):
        return self.main(z)

netD, netG = Critic().to(DEV), Generator().to(DEV)

# %%
def calc_gradient_penalty(netD, real, fake):
    alpha = torch.rand(real.size(0), 1, device=real.device).expand_as(real)
    mixed = (alpha * real + (1 - alpha) * fake).requires_grad_(True)
    scores = netD(mixed)
    gradients = autograd.grad(
        outputs=scores,
        inputs=mixed,
        grad_outputs=torch.ones(scores.size()),
        create_graph=True,
        retain_graph=True,
    )[0]
    return LAMBDA * ((gradients.norm(2, dim=1) - 1) ** 2).mean()

def critic_step(real):
    z = torch.randn(len(real), Z_DIM, device=real.device)
    fake = netG(z).detach()
    wasserstein = netD(fake).mean() - netD(real).mean()
    return wasserstein + calc_gradient_penalty(netD, real, fake)

# %%
ring = torch.nn.functional.normalize(torch.randn(8, 2))
d_loss = critic_step(ring.to(DEV))
