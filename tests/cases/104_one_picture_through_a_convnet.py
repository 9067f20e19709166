# id = "104"
# cause = "input_not_moved"
# also_causes = []
# culprit = "img"
# also_culprit = ["torch.stack([img, img.flip(-1)])"]
# culprit_cell = 3
# origin_cell = 4
# also_cells = [2]
# origin = "img = load_image(3)"
# culprit_device = "HOST"
# other_device = "DEV"
# fail_cell = 4
# fix_site = "cell line that failed"
# visible = "first user frame"
# expect_after_fix = "values.device == torch.device(DEV)"
# [[ref_fix]]
# op = "replace"
# cell = 4
# old = "img = load_image(3)"
# new = "img = load_image(3).to(DEV)"

# %%
import numpy as np, torch
from torch import nn

net = nn.Sequential(
    nn.Conv2d(3, 4, 3, padding=1), nn.ReLU(),
    nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4, 5),
)
_ = net.to(DEV).eval()

# %%
def load_image(seed):
    # stands in for PIL + transforms: H W C bytes -> C H W floats
    rng = np.random.default_rng(seed)
    arr = rng.integers(0, 255, size=(10, 12, 3), dtype=np.uint8)
    t = torch.from_numpy(arr).permute(2, 0, 1).float() / 255
    return (t - 0.5) / 0.25

# %%
@torch.inference_mode()
def predict_top(img, k=2):
    """class numbers and scores of a picture"""
    scores = net(
        torch.stack([img, img.flip(-1)])   # test-time augmentation
    ).mean(0).softmax(0)
    return scores.topk(k)

# %%
img = load_image(3)
print("größe", tuple(img.shape)); values, classes = predict_top(img)
