# id = "146"
# cause = "metric_state"
# also_causes = ["plain_tensor_attribute", "fresh_tensor_no_device"]
# culprit = "self.hit"
# also_culprit = ["metric", "metrics[0]", "metrics[0].hit", "metric.hit", "self.seen"]
# culprit_cell = 1
# origin_cell = 1
# also_cells = [2]
# origin = "self.hit, self.seen = torch.zeros(n), torch.zeros(n)"
# culprit_device = "HOST"
# other_device = "DEV"
# fail_cell = 3
# fix_site = "class of the notebook"
# visible = "only in an object attribute"
# expect_after_fix = "recall.device == torch.device(DEV) and loss.device == torch.device(DEV)"
# # the property itself may not be run to look at it
# [[ref_fix]]
# op = "replace"
# cell = 1
# old = "torch.zeros(n), torch.zeros(n)"
# new = "torch.zeros(n, device=DEV), torch.zeros(n, device=DEV)"
# [rerun]
# cells = [1, 2, 3]

# %%
import torch

class PerClassAccuracy:
    def __init__(self, n):
        self.hit, self.seen = torch.zeros(n), torch.zeros(n)

    def __call__(self, logits, y):
        ok = (logits.argmax(-1) == y).float()
        self.hit.scatter_add_(0, y, ok)
        self.seen.scatter_add_(0, y, torch.ones_like(ok))

    @property
    def value(self):
        return self.hit / self.seen.clamp(min=1)

# %%
metrics = [PerClassAccuracy(3)]
learner = torch.nn.Linear(4, 3).to(DEV)

def one_batch(x, y):
    out = learner(x)
    for metric in metrics: metric(out.detach(), y)
    return torch.nn.functional.cross_entropy(out, y)

# %%
loss = one_batch(torch.randn(6, 4).to(DEV), torch.randint(3, (6,)).to(DEV))
recall = metrics[0].value
