# id = "128"
# cause = "index_device"
# also_causes = []
# culprit = "idx"
# also_culprit = ["perm", "perm[i:i + bs]", "torch.randperm(len(x)).to(device)"]
# culprit_cell = 2
# origin_cell = 2
# also_cells = []
# origin = "perm = torch.randperm(len(x)).to(device)"
# culprit_device = "DEV"
# other_device = "HOST"
# fail_cell = 3
# fix_site = "a function in an earlier cell"
# visible = "raising frame"
# expect_after_fix = "loss.device == torch.device(DEV) and net.weight.device == torch.device(DEV) and train_x.device.type == 'cpu'"
# [[ref_fix]]
# op = "replace"
# cell = 2
# old = "torch.randperm(len(x)).to(device)"
# new = "torch.randperm(len(x))"
# [rerun]
# cells = [2, 3]

# %%
import torch
from torch import nn

device = DEV
train_x = torch.randn(30, 7)          # stays in host memory: the real one is 80 GB
train_y = torch.randn(30, 1)
net = nn.Linear(7, 1).to(device)

# %%
def minibatches(x, y, bs):
    perm = torch.randperm(len(x)).to(device)
    for i in range(0, len(x), bs):
        idx = perm[i:i + bs]
        yield x[idx].to(device), y[idx].to(device)

# %%
opt = torch.optim.SGD(net.parameters(), lr=.01)
for xb, yb in minibatches(train_x, train_y, 10):
    loss = nn.functional.mse_loss(net(xb), yb)
    loss.backward()
    opt.step(); opt.zero_grad()
