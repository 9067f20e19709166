# id = "114"
# cause = "optimizer_state"
# also_causes = []
# culprit = "opt"
# also_culprit = ["opt.state", "opt.state[net.layers[0].weight]", "opt.state[net.layers[0].weight]['exp_avg']", "opt.state[net.layers[0].weight]['exp_avg_sq']"]
# culprit_cell = 2
# origin_cell = 3
# also_cells = [4, 2]
# origin = "one_batch(torch.randn(3, 4), torch.randn(3, 1))"
# culprit_device = "HOST"
# other_device = "DEV"
# fail_cell = 4
# fix_site = "earlier cell"
# visible = "only in an object attribute"
# expect_after_fix = "all(s['exp_avg'].device == torch.device(DEV) for s in opt.state.values()) and len(losses) == 3"
# # moving the state in place is right as well, but step() has then counted once more than on the host
# [[ref_fix]]
# op = "replace"
# cell = 2
# old = "net = Mlp()"
# new = "net = Mlp().to(device)"
# [[ref_fix]]
# op = "replace"
# cell = 3
# old = "one_batch(torch.randn(3, 4), torch.randn(3, 1))"
# new = "one_batch(torch.randn(3, 4).to(device), torch.randn(3, 1).to(device))"
# [rerun]
# cells = [2, 3, 4]

# %%
import torch
from torch import nn
device = DEV

class Mlp(nn.Module):
    def __init__(self, sizes=(4, 6, 1)):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(i, o) for i, o in zip(sizes, sizes[1:]))
    def forward(self, x):
        for layer in self.layers[:-1]:
            x = layer(x).tanh()
        return self.layers[-1](x)

# %%
net = Mlp()
opt = torch.optim.Adam(net.parameters(), lr=1e-2)

def one_batch(x, y):
    opt.zero_grad()
    loss = (net(x) - y).square().mean()
    loss.backward()
    opt.step()
    return loss.item()

# %%
one_batch(torch.randn(3, 4), torch.randn(3, 1))   # does it run at all?

# %%
net.to(device)
losses = []
for _ in range(3):
    losses.append(one_batch(torch.randn(3, 4, device=device), torch.randn(3, 1, device=device)))
