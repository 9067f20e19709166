# id = "373"
# cause = "checkpoint_location"
# also_causes = ["ema_shadow", "model_not_moved"]
# culprit = "self.target"
# also_culprit = ["learner.target", "self.target[0]", "learner.target[0]", "learner.target[0].weight", "self.target[0].weight", "net", "net[0]", "net[0].weight", "nets['target']", "learner.nets()['target']"]
# culprit_cell = 2
# origin_cell = 2
# also_cells = [4, 5]
# origin = "net.load_state_dict(blob[name], assign=name not in trained)"
# culprit_device = "HOST"
# other_device = "DEV"
# fail_cell = 5
# fix_site = "checkpoint load"
# visible = "only in an object attribute"
# expect_after_fix = "all(p.device == torch.device(DEV) for p in learner.target.parameters()) and learner.seen == 2 and loss.device == torch.device(DEV)"
# # the weights of the file have to be in the target network (the numbers tell)
# [[ref_fix]]
# op = "replace"
# cell = 2
# old = ", assign=name not in trained)"
# new = ")"
# [rerun]
# cells = [2, 3, 4, 5]

# %%
import copy, io
import torch
import torch.nn.functional as F
from torch import nn

def encoder(width=8):
    return nn.Sequential(nn.Conv2d(3, width, 3, padding=1), nn.GELU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
                         nn.Linear(width, width))

# %%
class BYOL:
    """online network chases a slow target"""
    def __init__(self, device, tau=0.9):
        self.device, self.tau, self.seen = device, tau, 0
        self.online = encoder().to(device)
        self.target = copy.deepcopy(self.online).requires_grad_(False)
        self.predictor = nn.Linear(8, 8).to(device)
        self.opt = torch.optim.SGD([*self.online.parameters(), *self.predictor.parameters()], lr=0.1)

    def nets(self):
        return {"online": self.online, "target": self.target, "predictor": self.predictor}

    def save(self, f):
        torch.save({k: n.state_dict() for k, n in self.nets().items()}, f)

    def restore(self, f):
        blob = torch.load(f, map_location="cpu")
        trained = {"online", "predictor"}          # the optimizer holds these, keep the objects
        for name, net in self.nets().items():
            net.load_state_dict(blob[name], assign=name not in trained)
        self.target.requires_grad_(False)

    def step(self, v1, v2):
        v1, v2 = v1.to(self.device), v2.to(self.device)
        q = self.predictor(self.online(v1))
        with torch.no_grad():
            z = self.target(v2)
        loss = 2 - 2 * F.cosine_similarity(q, z).mean()
        self.opt.zero_grad(); loss.backward(); self.opt.step()
        for t, o in zip(self.target.parameters(), self.online.parameters()):
            t.lerp_(o.detach(), 1 - self.tau)
        self.seen += len(v1)
        return loss.detach()

# %%
disk = io.BytesIO()
night = BYOL(DEV)
night.step(torch.rand(2, 3, 8, 8), torch.rand(2, 3, 8, 8))
night.save(disk)

# %%
disk.seek(0)
learner = BYOL(DEV)
learner.restore(disk)

# %%
imgs = torch.rand(2, 3, 8, 8)
loss = learner.step(imgs, imgs.flip(-1))
