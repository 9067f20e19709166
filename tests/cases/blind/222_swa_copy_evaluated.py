# id = "222"
# cause = "ema_shadow"
# also_causes = ["model_not_moved"]
# culprit = "model"
# also_culprit = ["run.averaged", "run.averaged.module", "exp.averaged", "AveragedModel(self.net)"]
# culprit_cell = 3
# origin_cell = 2
# also_cells = [2, 4, 5]
# origin = "self.averaged = AveragedModel(self.net)"
# culprit_device = "HOST"
# other_device = "DEV"
# fail_cell = 5
# fix_site = "class of the notebook"
# visible = "first user frame"
# expect_after_fix = "all(p.device == torch.device(DEV) for p in exp.averaged.parameters()) and set(report) == {'plain', 'swa'} and len(val_x) == 6 and val_x.device == torch.device(DEV)"
# # the copy is made before launch() moves the net; the updates copy quietly to the host, only its evaluation fails
# [[ref_fix]]
# op = "run"
# code = "exp.averaged.to(DEV)"

# %%
import torch, torch.nn as nn
from torch.optim.swa_utils import AveragedModel

# %%
class Experiment:
    def __init__(self, net, lr=0.1):
        self.net = net
        self.averaged = AveragedModel(self.net)
        self.lr = lr

    def launch(self, device):
        self.net = self.net.to(device)
        self.opt = torch.optim.SGD(self.net.parameters(), lr=self.lr, momentum=0.9)
        return self

    def train_step(self, x, y):
        self.opt.zero_grad(set_to_none=True)
        out = nn.functional.binary_cross_entropy_with_logits(self.net(x).squeeze(1), y)
        out.backward()
        self.opt.step()

    def end_of_epoch(self):
        self.averaged.update_parameters(self.net)

# %%
@torch.no_grad()
def evaluate(run, x, y):
    scores = {}
    for tag, model in (('plain', run.net), ('swa', run.averaged)):
        model.eval()
        hit = (model(x).squeeze(1) > 0).float() == y
        scores[tag] = hit.float().mean().item()
    return scores

# %%
torch.manual_seed(1)
exp = Experiment(nn.Sequential(nn.Linear(3, 6), nn.ReLU(), nn.Linear(6, 1))).launch(DEV)
train_x = torch.linspace(-2, 2, 24).view(8, 3).to(DEV)
train_y = (train_x.sum(1) > 0).float()
exp.train_step(train_x, train_y)
exp.end_of_epoch()

# %%
val_x = torch.linspace(-1, 1, 18, device=DEV).view(6, 3)
report = evaluate(exp, val_x, (val_x.sum(1) > 0).float())
print(report)
