# id = "216"
# cause = "default_device_global"
# also_causes = ["generator_device"]
# culprit = "rng"
# also_culprit = ["torch.Generator()", "seeded(cfg.seed)", "loaders['train'].generator", "loaders['train'].sampler.generator"]
# culprit_cell = 2
# origin_cell = 1
# also_cells = [1, 3, 4]
# origin = "torch.set_default_device(cfg.device)"
# culprit_device = "HOST"
# other_device = "DEV"
# fail_cell = 4
# fix_site = "earlier cell"
# visible = "only in an object attribute"
# expect_after_fix = "len(epoch_losses) == 3 and all(p.device == torch.device(DEV) for p in lin.parameters())"
# [[ref_fix]]
# op = "replace"
# cell = 2
# old = "torch.Generator()"
# new = "torch.Generator(device=torch.get_default_device())"
# [rerun]
# cells = [2, 3, 4]

# %%
import torch, random
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from types import SimpleNamespace

cfg = SimpleNamespace(device=DEV, seed=7, bs=4, lr=.1)

def setup(cfg):
    random.seed(cfg.seed)
    torch.set_default_device(cfg.device)     # so I never need .to() again :)

setup(cfg)

# %%
def seeded(seed):
    rng = torch.Generator()
    rng.manual_seed(seed)
    return rng

def make_loaders(x, y, cfg):
    rng = seeded(cfg.seed)
    ds = TensorDataset(x, y)
    return {'train': DataLoader(ds, cfg.bs, shuffle=True, generator=rng),
            'val': DataLoader(ds, cfg.bs)}

# %%
X = torch.rand(12, 3)
Y = X.sum(1, keepdim=True)
loaders = make_loaders(X, Y, cfg)
lin = nn.Linear(3, 1)
opt = torch.optim.SGD(lin.parameters(), lr=cfg.lr)

# %%
epoch_losses = []
for xb, yb in loaders['train']:
    loss = nn.functional.mse_loss(lin(xb), yb)
    opt.zero_grad(); loss.backward(); opt.step()
    epoch_losses.append(float(loss))
