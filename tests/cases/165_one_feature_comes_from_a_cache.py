# id = "165"
# cause = "stray_in_collection"
# also_causes = ["stale_cache"]
# culprit = "feature_cache['img_01']"
# also_culprit = ["feature_cache", "features(k, v)", "[features(k, v) for k, v in gallery.items()]", "feature_cache[name]"]
# culprit_cell = 3
# origin_cell = 1
# also_cells = [2]
# origin = "return feature_cache[name]"
# culprit_device = "HOST"
# other_device = "DEV"
# fail_cell = 3
# fix_site = "a function in an earlier cell"
# visible = "not in any frame"
# expect_after_fix = "sims.device == torch.device(DEV)"
# [[ref_fix]]
# op = "replace"
# cell = 1
# old = "    return feature_cache[name]"
# new = "    return feature_cache[name].to(DEV)"
# [rerun]
# cells = [1, 2, 3]

# %%
import torch
from torch import nn

feature_cache = {}
backbone = nn.Sequential(nn.Flatten(), nn.Linear(9, 4)).to(DEV).eval()

@torch.no_grad()
def features(name, img):
    if name not in feature_cache:
        f = backbone(img[None].to(DEV))[0]
        feature_cache[name] = f.cpu()          # spare the card's memory
        return f
    return feature_cache[name]

# %%
gallery = {f"img_{i:02d}": torch.rand(3, 3) for i in range(4)}
q = features("img_01", gallery["img_01"])

# %%
bank = torch.stack([features(k, v) for k, v in gallery.items()])
sims = bank @ q
