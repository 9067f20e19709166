# id = "254"
# cause = "fresh_tensor_no_device"
# also_causes = []
# culprit = "torch.full((target.size(0), classes), self.eps / classes)"
# also_culprit = []
# culprit_cell = 2
# origin_cell = 2
# also_cells = []
# origin = "return torch.full((target.size(0), classes), self.eps / classes).scatter_("
# culprit_device = "HOST"
# other_device = "DEV"
# fail_cell = 4
# fix_site = "class of the notebook"
# visible = "in no frame: an anonymous temporary (a sub-expression of the line)"
# expect_after_fix = "loss.device == torch.device(DEV) and clf.weight.grad.device == torch.device(DEV)"
# [[ref_fix]]
# op = "replace"
# cell = 2
# old = "self.eps / classes).scatter_("
# new = "self.eps / classes, device=target.device).scatter_("
# [rerun]
# cells = [2, 3, 4]

# %%
import torch
import torch.nn as nn

LOSSES = {}

def register(name):
    def deco(cls):
        LOSSES[name] = cls
        return cls
    return deco

# %%
@register("ce")
class PlainCE(nn.CrossEntropyLoss):
    pass

@register("smooth_ce")
class SmoothCE(nn.Module):
    def __init__(self, eps=0.1):
        super().__init__()
        self.eps = eps

    def soften(self, target, classes):
        return torch.full((target.size(0), classes), self.eps / classes).scatter_(
            1, target[:, None], 1 - self.eps + self.eps / classes)

    def forward(self, logits, target):
        soft = self.soften(target, logits.size(1))
        return -(soft * logits.log_softmax(1)).sum(1).mean()

# %%
cfg = {"loss": "smooth_ce", "loss_args": {"eps": 0.2}, "lr": 0.1, "classes": 5}
clf = nn.Linear(7, cfg["classes"]).to(DEV)
criterion = LOSSES[cfg["loss"]](**cfg["loss_args"])

# %%
X, Y = torch.randn(12, 7, device=DEV), torch.arange(12, device=DEV) % cfg["classes"]
clf.zero_grad()
loss = criterion(clf(X), Y)
loss.backward()
