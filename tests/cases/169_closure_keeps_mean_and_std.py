# id = "169"
# cause = "closure_constant"
# also_causes = ["fresh_tensor_no_device"]
# culprit = "mean"
# also_culprit = ["std", "torch.tensor(mean).view(-1, 1, 1)"]
# culprit_cell = 1
# origin_cell = 1
# also_cells = [2]
# origin = "mean = torch.tensor(mean).view(-1, 1, 1)"
# culprit_device = "HOST"
# other_device = "DEV"
# fail_cell = 3
# fix_site = "a function in an earlier cell"
# visible = "raising frame"
# expect_after_fix = "fm.device == torch.device(DEV)"
# [[ref_fix]]
# op = "replace"
# cell = 1
# old = "img.sub(mean).div(std)"
# new = "img.sub(mean.to(img.device)).div(std.to(img.device))"
# [rerun]
# cells = [1, 2, 3]

# %%
import torch
from torch import nn

def make_normalize(mean, std):
    mean = torch.tensor(mean).view(-1, 1, 1)
    std = torch.tensor(std).view(-1, 1, 1)
    def normalize(img):
        return img.sub(mean).div(std)
    return normalize

# %%
def compose(*fs):
    def run(x):
        for f in fs:
            x = f(x)
        return x
    return run

augment = compose(lambda t: t.flip(-1), make_normalize([0.5, 0.4], [0.2, 0.3]), torch.Tensor.contiguous)
cnn = nn.Conv2d(2, 3, 3).to(DEV)

# %%
imgs = torch.rand(4, 2, 5, 5, device=DEV)
fm = cnn(augment(imgs))
