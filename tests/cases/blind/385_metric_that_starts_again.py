# id = "385"
# cause = "metric_state"
# also_causes = ["plain_tensor_attribute"]
# culprit = "self.inter"
# also_culprit = ["self", "miou", "miou.inter", "metric", "metric.inter", "self.union", "miou.union"]
# culprit_cell = 2
# origin_cell = 1
# also_cells = [1, 3, 4, 6]
# origin = "setattr(self, name, value.clone())"
# culprit_device = "HOST"
# other_device = "DEV"
# fail_cell = 6
# fix_site = "class of the notebook"
# visible = "only in an object attribute"
# expect_after_fix = "len(scores) == 2 and scores[1].device == torch.device(DEV) and scores[1].shape == (3,)"
# # the first evaluation ran: to() had moved the state; compute() ends with reset(), which makes it anew
# [[ref_fix]]
# op = "replace"
# cell = 1
# old = "setattr(self, name, value.clone())"
# new = "setattr(self, name, value.clone().to(self.device))"
# [rerun]
# cells = [1, 2, 3, 4, 5, 6]

# %%
import torch
from torch import nn

class Metric:
    def __init__(self):
        self._defaults, self.device = {}, "cpu"

    def add_state(self, name, value):
        self._defaults[name] = value
        setattr(self, name, value)

    def to(self, device):
        self.device = device
        for name in self._defaults:
            setattr(self, name, getattr(self, name).to(device))
        return self

    def reset(self):
        for name, value in self._defaults.items():
            setattr(self, name, value.clone())

    def result(self):
        value = self.compute()
        self.reset()
        return value

# %%
class MeanIoU(Metric):
    def __init__(self, n_classes):
        super().__init__()
        self.n_classes = n_classes
        self.add_state("inter", torch.zeros(n_classes))
        self.add_state("union", torch.zeros(n_classes))

    def update(self, pred, target):
        onehot_p, onehot_t = (nn.functional.one_hot(t, self.n_classes).float() for t in (pred, target))
        dims = tuple(range(pred.dim()))
        self.inter = self.inter + onehot_p.mul(onehot_t).sum(dims)
        self.union = self.union + torch.maximum(onehot_p, onehot_t).sum(dims)

    def compute(self):
        return self.inter / self.union.clamp(min=1)

# %%
seg = nn.Conv2d(3, 3, 3, padding=1).to(DEV)
miou = MeanIoU(3).to(DEV)
val = [(torch.rand(2, 3, 6, 6), torch.randint(3, (2, 6, 6))) for _ in range(2)]
scores = []

@torch.no_grad()
def evaluate(model, metric):
    where = next(model.parameters()).device
    for img, lab in val:
        metric.update(model(img.to(where)).argmax(1), lab.to(where))
    return metric.result()

# %%
scores.append(evaluate(seg, miou))

# %%
opt = torch.optim.SGD(seg.parameters(), lr=0.5)
for img, lab in val:
    loss = nn.functional.cross_entropy(seg(img.to(DEV)), lab.to(DEV))
    opt.zero_grad()
    loss.backward()
    opt.step()

# %%
scores.append(evaluate(seg, miou))
