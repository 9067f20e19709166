# id = "107"
# cause = "fresh_tensor_no_device"
# also_causes = ["label_not_moved"]
# culprit = "label"
# also_culprit = ["torch.full((real.size(0),), REAL)"]
# culprit_cell = 3
# origin_cell = 3
# also_cells = []
# origin = "label = torch.full((real.size(0),), REAL)"
# culprit_device = "HOST"
# other_device = "DEV"
# fail_cell = 3
# fix_site = "cell line that failed"
# visible = "first user frame"
# expect_after_fix = "errD_fake.device == torch.device(DEV) and netD[0].weight.device == torch.device(DEV)"
# [[ref_fix]]
# op = "replace"
# cell = 3
# old = "torch.full((real.size(0),), REAL)"
# new = "torch.full((real.size(0),), REAL, device=DEV)"

# %%
import torch
from torch import nn
nz, batch_size = 4, 6
netG = nn.Sequential(nn.Linear(nz, 8), nn.Tanh()).to(DEV)
netD = nn.Sequential(nn.Linear(8, 1), nn.Sigmoid()).to(DEV)
criterion = nn.BCELoss()

# %%
REAL, FAKE = 1., 0.
optD = torch.optim.SGD(netD.parameters(), lr=.05)
data = [torch.rand(batch_size, 8) for _ in range(2)]

# %%
for real in data:
    # (1) update D
    netD.zero_grad()
    real = real.to(DEV)
    label = torch.full((real.size(0),), REAL)
    errD_real = criterion(netD(real).view(-1), label)
    errD_real.backward()
    noise = torch.randn(real.size(0), nz, device=DEV)
    label.fill_(FAKE)
    errD_fake = criterion(netD(netG(noise).detach()).view(-1), label)
    errD_fake.backward(); optD.step()
