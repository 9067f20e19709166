# id = "175"
# cause = "no_accelerator"
# also_causes = []
# culprit = ""
# also_culprit = []
# culprit_cell = 3
# origin_cell = 1
# also_cells = []
# origin = "device = \"mps\""
# culprit_device = "none"
# other_device = "none"
# fail_cell = 3
# fix_site = "earlier cell"
# visible = "not in any frame"
# expect_after_fix = "err.ndim == 0 and err.device.type in ('cpu', 'cuda')"
# # nothing is on a wrong device: the culprit has to be null
# [[ref_fix]]
# op = "replace"
# cell = 1
# old = "device = \"mps\""
# new = "device = \"cuda\" if torch.cuda.is_available() else \"cpu\""
# [rerun]
# cells = [1, 3]

# %%
import torch
import torch.nn as nn

class Config:
    device = "mps"
    lr, steps = 3e-3, 2

cfg = Config()
net = nn.Sequential(nn.Linear(2, 4), nn.Tanh(), nn.Linear(4, 1))

# %%
def to_batch(n):
    x = torch.rand(n, 2)
    return x, (x[:, :1] * x[:, 1:])

# %%
net = net.to(cfg.device)
opt = torch.optim.Adam(net.parameters(), lr=cfg.lr)
for _ in range(cfg.steps):
    x, y = (t.to(cfg.device) for t in to_batch(8))
    err = (net(x) - y).pow(2).mean()
    opt.zero_grad(); err.backward(); opt.step()
