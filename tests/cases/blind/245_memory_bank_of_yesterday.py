# id = "245"
# cause = "checkpoint_location"
# also_causes = ["plain_tensor_attribute"]
# culprit = "self.bank"
# also_culprit = ["detector.bank", "patchcore.bank", "saved['bank']", "state['bank']", "torch.load(path)"]
# culprit_cell = 2
# origin_cell = 2
# also_cells = [4]
# origin = "saved = torch.load(path)"
# culprit_device = "DEV2"
# other_device = "DEV"
# fail_cell = 5
# fix_site = "checkpoint load"
# visible = "raising frame"
# expect_after_fix = "detector.bank.device == torch.device(DEV) and anomaly.device == torch.device(DEV)"
# needs = "DEV2"
# [[ref_fix]]
# op = "replace"
# cell = 2
# old = "saved = torch.load(path)"
# new = "saved = torch.load(path, map_location=DEV)"
# [rerun]
# cells = [2, 4, 5]

# %%
import tempfile, pathlib
import torch
from torch import nn

work = pathlib.Path(tempfile.mkdtemp())

# %% PatchCore in 20 lines
class PatchCore:
    def __init__(self, backbone, k=2):
        self.backbone, self.k, self.bank = backbone.eval(), k, None

    def fit(self, x):
        with torch.no_grad():
            self.bank = self.backbone(x)
        return self

    def save(self, path):
        torch.save({'bank': self.bank, 'k': self.k, 'backbone': self.backbone.state_dict()}, path)

    def load(self, path):
        saved = torch.load(path)
        self.backbone.load_state_dict(saved['backbone'])
        self.bank, self.k = saved['bank'], saved['k']
        return self

    @torch.no_grad()
    def score(self, x):
        z = self.backbone(x)
        d = (z.unsqueeze(1) - self.bank).norm(dim=-1)
        return d.topk(self.k, largest=False).values.mean(1)

def backbone():
    return nn.Sequential(nn.Linear(6, 5), nn.Tanh())

# %% yesterday, on the second card
good = torch.linspace(0, 1, 48).view(8, 6)
PatchCore(backbone().to(DEV2)).fit(good.to(DEV2)).save(work / 'bottle.pt')

# %% today
detector = PatchCore(backbone().to(DEV)).load(work / 'bottle.pt')
print('bank of', len(detector.bank), 'patches, k =', detector.k)

# %%
queries = torch.stack([good[0], good[3].flip(0), good[5] * 4]).to(DEV)
anomaly = detector.score(queries)
