# id = "120"
# cause = "plain_tensor_attribute"
# also_causes = ["input_not_moved", "fresh_tensor_no_device"]
# culprit = "self.cfg.pixel_mean"
# also_culprit = ["cfg.pixel_mean", "cfg.pixel_std", "cfg", "self.cfg"]
# culprit_cell = 2
# origin_cell = 1
# also_cells = []
# origin = "pixel_mean=torch.tensor([0.4, 0.5, 0.6]).view(3, 1, 1),"
# culprit_device = "HOST"
# other_device = "DEV"
# fail_cell = 3
# fix_site = "earlier cell"
# visible = "only in an object attribute"
# expect_after_fix = "preds.device == torch.device(DEV)"
# [[ref_fix]]
# op = "run"
# code = "cfg.pixel_mean, cfg.pixel_std = cfg.pixel_mean.to(DEV), cfg.pixel_std.to(DEV)"

# %%
import torch, torch.nn.functional as F
from types import SimpleNamespace

cfg = SimpleNamespace(
    lr=1e-2, device=DEV,
    pixel_mean=torch.tensor([0.4, 0.5, 0.6]).view(3, 1, 1),
    pixel_std=torch.tensor([0.2, 0.2, 0.3]).view(3, 1, 1),
)

# %%
class Detector(torch.nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.cfg = cfg
        self.backbone = torch.nn.Conv2d(3, 4, 3)
    def preprocess_image(self, images):
        images = [(im.to(self.cfg.device) - self.cfg.pixel_mean) / self.cfg.pixel_std for im in images]
        return torch.stack(images)
    def forward(self, images):
        return self.backbone(self.preprocess_image(images)).flatten(2).mean(-1)

detector = Detector(cfg).to(cfg.device)

# %%
preds = detector([torch.rand(3, 8, 8), torch.rand(3, 8, 8)])
