# id = "342"
# cause = "input_not_moved"
# also_causes = ["plain_tensor_attribute"]
# culprit = "self.x_bc"
# also_culprit = ["pinn.x_bc", "x_bc", "self.u_bc", "pinn.u_bc"]
# culprit_cell = 3
# origin_cell = 4
# also_cells = [2]
# origin = "pinn = BurgersPINN(collocation.to(DEV), x_bc, u_bc)"
# culprit_device = "HOST"
# other_device = "DEV"
# fail_cell = 5
# fix_site = "earlier cell"
# visible = "only in an object attribute"
# expect_after_fix = "len(pinn.log) == 3 and final_loss.device == torch.device(DEV)"
# [[ref_fix]]
# op = "replace"
# cell = 4
# old = "BurgersPINN(collocation.to(DEV), x_bc, u_bc)"
# new = "BurgersPINN(collocation.to(DEV), x_bc.to(DEV), u_bc.to(DEV))"
# [rerun]
# cells = [4, 5]

# %%
import math
import numpy as np
import torch
import torch.nn as nn

# %%
# sample the domain: x in [-1, 1], t in [0, 1]
rng = np.random.default_rng(0)
collocation = torch.tensor(rng.uniform([-1, 0], [1, 1], (64, 2)), dtype=torch.float32)
left = np.c_[-np.ones(8), np.linspace(0, 1, 8)]
init = np.c_[np.linspace(-1, 1, 8), np.zeros(8)]
x_bc = torch.tensor(np.r_[left, init], dtype=torch.float32)
u_bc = torch.tensor(np.r_[np.zeros(8), -np.sin(math.pi * init[:, 0])], dtype=torch.float32)[:, None]

# %%
class BurgersPINN:
    nu = 0.01 / math.pi

    def __init__(self, x_f, x_bc, u_bc, width=10):
        self.net = nn.Sequential(nn.Linear(2, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh(),
                                 nn.Linear(width, 1))
        self.net.to(x_f.device)
        self.x_f = x_f.requires_grad_(True)
        self.x_bc, self.u_bc = x_bc, u_bc
        self.opt = torch.optim.Adam(self.net.parameters(), lr=1e-3)
        self.log = []

    def residual(self):
        u = self.net(self.x_f)
        du = torch.autograd.grad(u.sum(), self.x_f, create_graph=True)[0]
        u_x, u_t = du[:, :1], du[:, 1:]
        u_xx = torch.autograd.grad(u_x.sum(), self.x_f, create_graph=True)[0][:, :1]
        return u_t + u * u_x - self.nu * u_xx

    def loss(self):
        mse_f = self.residual().pow(2).mean()
        mse_u = (self.net(self.x_bc) - self.u_bc).pow(2).mean()
        return mse_f + mse_u

    def fit(self, epochs):
        for _ in range(epochs):
            self.opt.zero_grad()
            self.last = self.loss()
            self.last.backward()
            self.opt.step()
            self.log.append(float(self.last))

# %%
pinn = BurgersPINN(collocation.to(DEV), x_bc, u_bc)
print(next(pinn.net.parameters()).device, pinn.x_f.device)

# %%
pinn.fit(3)
final_loss = pinn.last.detach()
