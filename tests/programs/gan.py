"""A generator and a discriminator play for points on a ring; moving averages of the generator."""

# %%
import math

import torch
from torch import nn, optim

device = torch.device(DEV)
nz = 8
real_label, fake_label = 1.0, 0.0


# %%
def weights_init(m):
    if isinstance(m, nn.Linear):
        nn.init.normal_(m.weight, 0.0, 0.2)
        nn.init.zeros_(m.bias)


class Generator(nn.Module):
    def __init__(self):
        super().__init__()
        self.main = nn.Sequential(
            nn.Linear(nz, 32), nn.BatchNorm1d(32), nn.ReLU(True), nn.Linear(32, 32), nn.ReLU(True), nn.Linear(32, 2)
        )

    def forward(self, z):
        return self.main(z)


class Discriminator(nn.Module):
    def __init__(self):
        super().__init__()
        self.main = nn.Sequential(nn.Linear(2, 32), nn.LeakyReLU(0.2, inplace=True), nn.Linear(32, 1))

    def forward(self, x):
        return self.main(x).view(-1)


netG = Generator().to(device)
netG.apply(weights_init)
netD = Discriminator().to(device)
netD.apply(weights_init)
criterion = nn.BCEWithLogitsLoss()
fixed_noise = torch.randn(16, nz, device=device)
optimizerD = optim.Adam(netD.parameters(), lr=2e-3, betas=(0.5, 0.999))
optimizerG = optim.Adam(netG.parameters(), lr=2e-3, betas=(0.5, 0.999))
shadow = torch.optim.swa_utils.AveragedModel(netG, multi_avg_fn=torch.optim.swa_utils.get_ema_multi_avg_fn(0.9))


# %%
def sample_ring(n):
    angle = torch.rand(n) * 2 * math.pi
    return torch.stack([angle.cos(), angle.sin()], 1) + 0.05 * torch.randn(n, 2)


def gradient_penalty(real, fake):
    mix = torch.rand(real.size(0), 1, device=real.device)
    between = (mix * real + (1 - mix) * fake).requires_grad_()
    score = netD(between)
    (grad,) = torch.autograd.grad(score, between, grad_outputs=torch.ones_like(score), create_graph=True)
    return (grad.norm(2, dim=1) - 1).pow(2).mean()


# %%
losses, img_list = [], []
for step in range(20):
    netD.zero_grad()
    real = sample_ring(32).to(device)
    label = torch.full((32,), real_label, device=device)
    errD_real = criterion(netD(real), label)
    errD_real.backward()

    noise = torch.randn(32, nz, device=device)
    fake = netG(noise)
    label.fill_(fake_label)
    errD_fake = criterion(netD(fake.detach()), label) + 0.1 * gradient_penalty(real, fake.detach())
    errD_fake.backward()
    optimizerD.step()

    netG.zero_grad()
    label.fill_(real_label)
    errG = criterion(netD(fake), label)
    errG.backward()
    optimizerG.step()
    shadow.update_parameters(netG)
    losses += [errD_real.item() + errD_fake.item(), errG.item()]
    if step % 10 == 9:
        with torch.no_grad():
            img_list.append(netG(fixed_noise).detach().cpu())

# %%
points = torch.cat(img_list)
radius = points.norm(dim=1)
print("radius", radius.mean().item(), "+-", radius.std().item())
shadow.eval()
with torch.no_grad():
    smooth = shadow(fixed_noise).cpu().numpy()
losses += [float(radius.mean()), float(abs(smooth).sum())]
