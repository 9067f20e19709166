# id = "252"
# cause = "input_not_moved"
# also_causes = []
# culprit = "F.affine_grid(self.theta_for(len(img)), list(img.shape), align_corners=False)"
# also_culprit = ["self.theta_for(len(img))", "torch.from_numpy(m)"]
# culprit_cell = 2
# origin_cell = 2
# also_cells = []
# origin = "return torch.from_numpy(m)"
# culprit_device = "HOST"
# other_device = "DEV"
# fail_cell = 4
# fix_site = "class of the notebook"
# visible = "in no user frame: an anonymous temporary (named in the frame of the library)"
# expect_after_fix = "warped.shape == (4, 1, 8, 8) and warped.device == torch.device(DEV)"
# [[ref_fix]]
# op = "replace"
# cell = 2
# old = "F.affine_grid(self.theta_for(len(img)),"
# new = "F.affine_grid(self.theta_for(len(img)).to(img.device),"
# [rerun]
# cells = [2, 3, 4]

# %%
import math
import numpy as np
import torch
import torch.nn.functional as F

# %%
class AffineJitter:
    """Small random rotations + shifts, drawn with numpy so that the old
    experiments (which used imgaug) stay reproducible."""

    def __init__(self, degrees=10.0, shift=0.1, seed=0):
        self.degrees, self.shift = degrees, shift
        self.rng = np.random.default_rng(seed)

    def theta_for(self, n):
        a = np.deg2rad(self.rng.uniform(-self.degrees, self.degrees, n))
        m = np.zeros((n, 2, 3), dtype=np.float32)
        m[:, 0, 0], m[:, 0, 1] = np.cos(a), -np.sin(a)
        m[:, 1, 0], m[:, 1, 1] = np.sin(a), np.cos(a)
        m[:, :, 2] = self.rng.uniform(-self.shift, self.shift, (n, 2))
        return torch.from_numpy(m)

    def __call__(self, img):
        return F.grid_sample(img, F.affine_grid(self.theta_for(len(img)), list(img.shape), align_corners=False),
                             padding_mode="border", align_corners=False)

# %%
augment = AffineJitter(seed=13)
# sanity check on a gradient image
ramp = torch.linspace(0, 1, 64).reshape(1, 1, 8, 8)
print("range kept:", bool(augment(ramp).max() <= 1.0))
augment = AffineJitter(seed=13)        # start the stream over

# %%
digits = torch.rand(4, 1, 8, 8).to(DEV)
warped = augment(digits)
warped.mean()
