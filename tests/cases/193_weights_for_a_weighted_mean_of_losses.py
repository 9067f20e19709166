# id = "193"
# cause = "loss_weight"
# also_causes = ["plain_tensor_attribute"]
# culprit = "self.cfg.weights"
# also_culprit = ["compute_loss.cfg.weights", "compute_loss.cfg", "self.cfg", "compute_loss"]
# culprit_cell = 1
# origin_cell = 2
# also_cells = [3]
# origin = "compute_loss = YoloLoss(LossConfig())"
# culprit_device = "HOST"
# other_device = "DEV"
# fail_cell = 3
# fix_site = "class of the notebook"
# visible = "only in an object attribute"
# expect_after_fix = "loss.device == torch.device(DEV)"
# [[ref_fix]]
# op = "replace"
# cell = 1
# old = "(parts * self.cfg.weights)"
# new = "(parts * self.cfg.weights.to(parts.device))"
# [rerun]
# cells = [1, 2, 3]

# %%
import torch
from torch import nn
from dataclasses import dataclass, field

@dataclass
class LossConfig:
    names: tuple = ("cls", "box", "obj")
    weights: torch.Tensor = field(default_factory=lambda: torch.tensor([1.0, 0.05, 0.7]))

class YoloLoss:
    """три части, складываются с весами"""
    def __init__(self, cfg): self.cfg = cfg
    def __call__(self, p, t):
        parts = torch.stack([
            nn.functional.cross_entropy(p[:, :3], t["cls"]),
            (p[:, 3:5] - t["box"]).abs().mean(),
            nn.functional.softplus(-p[:, 5]).mean(),
        ])
        return (parts * self.cfg.weights).sum(), dict(zip(self.cfg.names, parts.tolist()))

# %%
head = nn.Linear(4, 6).to(DEV); compute_loss = YoloLoss(LossConfig())
targets = {"cls": torch.tensor([0, 2], device=DEV), "box": torch.rand(2, 2).to(DEV)}

# %%
pred = head(torch.rand(2, 4).to(DEV))
loss, items = compute_loss(pred, targets); loss.backward()
