# id = "219"
# cause = "derived_tensor_in_init"
# also_causes = ["plain_tensor_attribute"]
# culprit = "self._k2d"
# also_culprit = ["kernel", "self.kernel", "self.blur._k2d", "torch.outer(self.taps, self.taps)", "self._k2d.expand(channels, 1, -1, -1)"]
# culprit_cell = 1
# origin_cell = 1
# also_cells = [2]
# origin = "self._k2d = torch.outer(self.taps, self.taps)"
# culprit_device = "HOST"
# other_device = "DEV"
# fail_cell = 4
# fix_site = "class __init__"
# visible = "raising frame"
# expect_after_fix = "small['photo'].device == torch.device(DEV) and small['photo'].shape == (1, 3, 4, 4)"
# [[ref_fix]]
# op = "replace"
# cell = 1
# old = "self._k2d = torch.outer(self.taps, self.taps)"
# new = "self.register_buffer('_k2d', torch.outer(self.taps, self.taps), persistent=False)"
# [rerun]
# cells = [1, 2, 3, 4]

# %% blur-pool, after "Making convolutional networks shift-invariant again"
import torch
from torch import nn

class Blur(nn.Module):
    BINOMIAL = {3: (1., 2., 1.), 5: (1., 4., 6., 4., 1.)}

    def __init__(self, size=3):
        super().__init__()
        taps = torch.tensor(self.BINOMIAL[size])
        self.register_buffer('taps', taps / taps.sum())   # moves with the module
        self._k2d = torch.outer(self.taps, self.taps)

    @property
    def kernel(self):
        return self._k2d[None, None]

    def depthwise(self, channels):
        return self._k2d.expand(channels, 1, -1, -1)

    def forward(self, img, stride=2):
        c = img.shape[1]
        kernel = self.depthwise(c)
        return nn.functional.conv2d(img, kernel, stride=stride, padding=len(self.taps) // 2, groups=c)

# %%
class Pyramid(nn.Module):
    def __init__(self, levels):
        super().__init__()
        self.blur, self.levels = Blur(5), levels
    def forward(self, img):
        for _ in range(self.levels):
            img = self.blur(img)
        return img

# %%
pyr = Pyramid(2)
pyr.to(DEV)
assert all(b.device == torch.device(DEV) for b in pyr.buffers())
images = {'photo': torch.rand(1, 3, 16, 16, device=DEV), 'scan': torch.rand(2, 1, 8, 8, device=DEV)}

# %%
small = {name: pyr(im) for name, im in images.items()}
