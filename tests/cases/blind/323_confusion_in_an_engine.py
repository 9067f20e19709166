# id = "323"
# cause = "metric_state"
# also_causes = ["plain_tensor_attribute"]
# culprit = "self.mat"
# also_culprit = ["metric.mat", "metric", "evaluator.metrics['miou']", "evaluator.metrics['miou'].mat", "self.metrics['miou']", "self"]
# culprit_cell = 2
# origin_cell = 2
# also_cells = [3, 4]
# origin = "self.mat = torch.zeros(self.n, self.n, dtype=torch.long)"
# culprit_device = "HOST"
# other_device = "DEV"
# fail_cell = 5
# fix_site = "class of the notebook"
# visible = "only in an object attribute"
# expect_after_fix = "0 <= float(report['miou']) <= 1 and 0 <= float(report['pixacc']) <= 1 and int(evaluator.metrics['miou'].mat.sum()) == 2 * 2 * 36"
# [[ref_fix]]
# op = "replace"
# cell = 2
# old = "self.mat += torch.bincount(k, minlength=self.n ** 2).view(self.n, self.n)"
# new = "self.mat = self.mat.to(k.device) + torch.bincount(k, minlength=self.n ** 2).view(self.n, self.n)"
# [rerun]
# cells = [2, 4, 5]

# %%
import torch
from torch import nn

# %%
class ConfusionBased:
    def __init__(self, n):
        self.n = n
        self.reset()

    def reset(self):
        self.mat = torch.zeros(self.n, self.n, dtype=torch.long)

    def update(self, pred, true):
        k = true.flatten() * self.n + pred.flatten()
        self.mat += torch.bincount(k, minlength=self.n ** 2).view(self.n, self.n)

class MeanIoU(ConfusionBased):
    def compute(self):
        inter = self.mat.diag().double()
        union = self.mat.sum(0) + self.mat.sum(1) - self.mat.diag()
        return (inter / union.clamp(min=1)).mean()

class PixelAccuracy(ConfusionBased):
    def compute(self):
        return self.mat.diag().sum().double() / self.mat.sum()

# %%
class Evaluator:
    def __init__(self, step):
        self.step, self.metrics = step, {}

    def attach(self, **metrics):
        self.metrics.update(metrics)
        return self

    def run(self, data):
        for metric in self.metrics.values():
            metric.reset()
        for batch in data:
            pred, true = self.step(batch)
            for metric in self.metrics.values():
                metric.update(pred, true)
        return {name: metric.compute() for name, metric in self.metrics.items()}

# %%
segmenter = nn.Conv2d(3, 4, 1).to(DEV).eval()

def eval_step(batch):
    x, y = (t.to(DEV) for t in batch)
    with torch.no_grad():
        return segmenter(x).argmax(1), y

evaluator = Evaluator(eval_step).attach(miou=MeanIoU(4), pixacc=PixelAccuracy(4))

# %%
val = [(torch.rand(2, 3, 6, 6), torch.randint(0, 4, (2, 6, 6))) for _ in range(2)]
report = evaluator.run(val)
print({k: f"{v:.3f}" for k, v in report.items()})
