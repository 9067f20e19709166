# id = "347"
# cause = "model_not_moved"
# also_causes = []
# culprit = "self.netD"
# also_culprit = ["gan.netD", "nets['D']", "self.netD.main", "netD", "gan.netD.main"]
# culprit_cell = 3
# origin_cell = 4
# also_cells = [2]
# origin = "nets = {'G': Generator().to(DEV), 'D': Discriminator()}"
# culprit_device = "HOST"
# other_device = "DEV"
# fail_cell = 5
# fix_site = "earlier cell"
# visible = "only in an object attribute"
# expect_after_fix = "all(v.device == torch.device(DEV) for v in errs.values())"
# # the optimizers were made from the same parameters: moving the module in place keeps them
# [[ref_fix]]
# op = "run"
# code = "nets['D'].to(DEV)"

# %%
import torch
import torch.nn as nn
nz, ngf, ndf = 4, 4, 4

# %%
class Generator(nn.Module):
    def __init__(self):
        super().__init__()
        self.main = nn.Sequential(
            nn.ConvTranspose2d(nz, ngf, 4, 1, 0, bias=False), nn.ReLU(True),
            nn.ConvTranspose2d(ngf, 1, 4, 2, 1, bias=False), nn.Tanh())
    def forward(self, z):
        return self.main(z)

class Discriminator(nn.Module):
    def __init__(self):
        super().__init__()
        self.main = nn.Sequential(
            nn.Conv2d(1, ndf, 4, 2, 1, bias=False), nn.LeakyReLU(0.2, inplace=True),
            nn.Conv2d(ndf, 1, 4, 1, 0, bias=False))
    def forward(self, img):
        return self.main(img).view(-1)

# %%
class DCGAN:
    def __init__(self, nets, lr=2e-4):
        self.netG, self.netD = nets['G'], nets['D']
        self.opt = {k: torch.optim.SGD(n.parameters(), lr=lr) for k, n in nets.items()}
        self.bce = nn.BCEWithLogitsLoss()

    def step(self, real):
        z = torch.randn(len(real), nz, 1, 1, device=real.device)
        fake = self.netG(z)
        # (1) maximize log(D(x)) + log(1 - D(G(z)))
        self.opt['D'].zero_grad()
        p_fake = self.netD(fake.detach())
        p_real = self.netD(real)
        errD = self.bce(p_real, torch.ones_like(p_real)) + self.bce(p_fake, torch.zeros_like(p_fake))
        errD.backward(); self.opt['D'].step()
        # (2) maximize log(D(G(z)))
        self.opt['G'].zero_grad()
        p = self.netD(fake)
        errG = self.bce(p, torch.ones_like(p))
        errG.backward(); self.opt['G'].step()
        return {'D': errD.detach(), 'G': errG.detach()}

# %%
nets = {'G': Generator().to(DEV), 'D': Discriminator()}
for net in nets.values():
    for p in net.parameters():
        nn.init.normal_(p, 0.0, 0.02)
gan = DCGAN(nets)

# %%
dataloader = [torch.rand(5, 1, 8, 8) * 2 - 1 for _ in range(2)]
for i, data in enumerate(dataloader):
    errs = gan.step(data.to(DEV))
