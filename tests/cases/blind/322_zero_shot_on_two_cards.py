# id = "322"
# cause = "dp_replica_state"
# also_causes = ["plain_tensor_attribute"]
# culprit = "self.text_features"
# also_culprit = ["clip.text_features", "parallel.module.text_features", "self.text_features.t()"]
# culprit_cell = 2
# origin_cell = 2
# also_cells = [3]
# origin = "self.text_features = F.normalize(self.text(token_counts), dim=-1)"
# culprit_device = "DEV"
# other_device = "DEV2"
# fail_cell = 5
# fix_site = "forward"
# visible = "not in any frame"
# expect_after_fix = "logits.device == torch.device(DEV) and logits.shape == (8, 3)"
# needs = "DEV2"
# [[ref_fix]]
# op = "replace"
# cell = 2
# old = "img @ self.text_features.t()"
# new = "img @ self.text_features.to(img.device).t()"
# [rerun]
# cells = [2, 3, 4, 5]

# %%
import torch
import torch.nn.functional as F
from torch import nn

classes = ["cat", "dog", "ship"]
letters = "abcdefghijklmnopqrstuvwxyz"

def bag_of_letters(words, template="photo of a {}"):
    return torch.tensor([[float(template.format(w).count(c)) for c in letters] for w in words])

# %%
class ZeroShot(nn.Module):
    """text side is encoded once, images come in batches"""
    def __init__(self, d=6):
        super().__init__()
        self.text = nn.Linear(len(letters), d)
        self.visual = nn.Sequential(nn.Flatten(), nn.Linear(3 * 4 * 4, d))
        self.logit_scale = nn.Parameter(torch.tensor(2.0))
        self.text_features = None

    @torch.no_grad()
    def set_classes(self, token_counts):
        self.text_features = F.normalize(self.text(token_counts), dim=-1)

    def forward(self, images):
        img = F.normalize(self.visual(images), dim=-1)
        return self.logit_scale.exp() * img @ self.text_features.t()

# %%
clip = ZeroShot().to(DEV).eval()
clip.set_classes(bag_of_letters(classes).to(DEV))
with torch.no_grad():
    print(clip(torch.rand(1, 3, 4, 4, device=DEV)).softmax(-1))      # one card: fine

# %%
parallel = nn.DataParallel(clip, device_ids=[DEV, DEV2]) if DEV != HOST else clip

# %%
with torch.no_grad():
    logits = parallel(torch.rand(8, 3, 4, 4, device=DEV))
