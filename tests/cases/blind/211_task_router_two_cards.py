# id = "211"
# cause = "dp_replica_state"
# also_causes = []
# culprit = "self.age"
# also_culprit = ["self.routes", "self.age.weight", "self.sex", "self.routes['age']", "core.age", "core.routes", "core.routes['age']", "core.age.weight"]
# culprit_cell = 2
# origin_cell = 2
# also_cells = [3]
# origin = "self.routes = {'age': self._age, 'sex': self._sex}"
# culprit_device = "DEV"
# other_device = "DEV2"
# fail_cell = 5
# fix_site = "class __init__"
# visible = "in no frame (worker thread of DataParallel, replica 1)"
# expect_after_fix = "pred['age'].device == torch.device(DEV) and pred['age'].shape == (8, 1) and pred['sex'].shape == (8, 2)"
# needs = "DEV2"
# # bound methods kept in __init__ belong to the module of the first card: look them up in forward instead; one card only is right as well
# [[ref_fix]]
# op = "replace"
# cell = 2
# old = "self.routes[t](z)"
# new = "getattr(self, '_' + t)(z)"
# [rerun]
# cells = [2, 3, 5]

# %% [markdown] faces, two tasks
import torch
import torch.nn as nn
from collections import OrderedDict

TASKS = ('age', 'sex')

# %%
class FaceNet(nn.Module):
    """shared trunk; every task has its own route"""

    def __init__(self, d_in=12, width=16):
        super().__init__()
        self.trunk = nn.Sequential(OrderedDict([
            ('fc1', nn.Linear(d_in, width)), ('act', nn.GELU()),
            ('fc2', nn.Linear(width, width)),
        ]))
        self.age = nn.Linear(width, 1)
        self.sex = nn.Linear(width, 2)
        # dispatch table, saves an if/elif chain below
        self.routes = {'age': self._age, 'sex': self._sex}

    def _age(self, z):
        return torch.sigmoid(self.age(z)) * 100

    def _sex(self, z):
        return self.sex(z)

    def forward(self, x, tasks=TASKS):
        z = self.trunk(x)
        return {t: self.routes[t](z) for t in tasks}

# %%
core = FaceNet().to(DEV)
net = core
if DEV.startswith('cuda') and torch.cuda.device_count() > 1:
    net = nn.DataParallel(core, device_ids=[0, 1])

# %%
def fake_faces(n=8):
    return torch.randn(n, 12, device=DEV)

faces = fake_faces()

# %%
net.eval()
with torch.no_grad():
    pred = net(faces)
print({k: tuple(v.shape) for k, v in pred.items()})
