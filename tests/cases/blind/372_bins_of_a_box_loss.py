# id = "372"
# cause = "plain_tensor_attribute"
# also_causes = ["derived_tensor_in_init"]
# culprit = "self.bins"
# also_culprit = ["criterion.bins", "criterion", "self.criterion", "self.criterion.bins", "trainer.criterion", "trainer.criterion.bins"]
# culprit_cell = 2
# origin_cell = 2
# also_cells = [3, 4]
# origin = "self.bins = torch.arange(model.reg_max, dtype=w.dtype, device=w.device)"
# culprit_device = "HOST"
# other_device = "DEV"
# fail_cell = 4
# fix_site = "class __init__"
# visible = "only in an object attribute"
# expect_after_fix = "last.device == torch.device(DEV) and len(trainer.history) == 1 and model.stem.weight.grad is not None"
# [[ref_fix]]
# op = "run"
# code = "criterion.bins = criterion.bins.to(DEV)"

# %%
import torch
import torch.nn.functional as F
from torch import nn

class Detector(nn.Module):
    """anchor free: every cell tells its four sides as a distribution over bins"""
    def __init__(self, reg_max=8, n_classes=3):
        super().__init__()
        self.reg_max, self.n_classes = reg_max, n_classes
        self.stem = nn.Conv2d(3, 12, 3, stride=4, padding=1)
        self.out = nn.Conv2d(12, 4 * reg_max + n_classes, 1)

    def forward(self, images):
        y = self.out(F.silu(self.stem(images))).flatten(2).transpose(1, 2)
        return y.split((4 * self.reg_max, self.n_classes), -1)

# %%
class DetectionLoss:
    def __init__(self, model, gains=(7.5, 0.5)):
        w = next(model.parameters())
        self.gains = dict(zip(("box", "cls"), gains))
        self.bce = nn.BCEWithLogitsLoss()
        self.reg_max = model.reg_max
        self.bins = torch.arange(model.reg_max, dtype=w.dtype, device=w.device)

    def sides(self, dist):
        p = dist.unflatten(-1, (4, self.reg_max)).softmax(-1)
        return p @ self.bins

    def __call__(self, preds, batch):
        dist, scores = preds
        parts = {"cls": self.bce(scores, batch["onehot"]),
                 "box": F.smooth_l1_loss(self.sides(dist), batch["ltrb"])}
        return sum(self.gains[k] * v for k, v in parts.items())

# %%
class Trainer:
    def __init__(self, model, criterion, device):
        self.device, self.history = device, []
        self.model = model.to(device)
        self.criterion = criterion
        self.opt = torch.optim.SGD(self.model.parameters(), lr=1e-2)

    def prepare(self, batch):
        return {k: v.to(self.device) for k, v in batch.items()}

    def step(self, batch):
        batch = self.prepare(batch)
        self.opt.zero_grad()
        loss = self.criterion(self.model(batch["img"]), batch)
        loss.backward()
        self.opt.step()
        self.history.append(float(loss.detach()))
        return loss

model = Detector()
criterion = DetectionLoss(model)
trainer = Trainer(model, criterion, device=DEV)

# %%
batch = {"img": torch.rand(2, 3, 16, 16), "ltrb": 7 * torch.rand(2, 16, 4), "onehot": (torch.rand(2, 16, 3) > .8).float()}
last = trainer.step(batch)
