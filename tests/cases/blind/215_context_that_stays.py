# id = "215"
# cause = "default_device_global"
# also_causes = ["fresh_tensor_no_device"]
# culprit = "edges"
# also_culprit = ["torch.linspace(lo, hi, bins + 1)", "quantizer.edges", "self.edges"]
# culprit_cell = 3
# origin_cell = 1
# also_cells = [1, 4]
# origin = "torch.set_default_device(self.name)"
# culprit_device = "DEV2"
# other_device = "HOST"
# fail_cell = 4
# fix_site = "earlier cell"
# visible = "raising frame"
# expect_after_fix = "codes.device == torch.device(HOST) and quantizer.edges.device == torch.device(HOST) and coef.device == torch.device(DEV2)"
# needs = "DEV2"
# # the context never puts the default back, so everything made afterwards without a device is born on the second card
# [[ref_fix]]
# op = "replace"
# cell = 1
# old = "        return False"
# new = "        torch.set_default_device(self.before)\n        return False"
# [[ref_fix]]
# op = "replace"
# cell = 1
# old = "        torch.set_default_device(self.name)"
# new = "        self.before = torch.get_default_device()\n        torch.set_default_device(self.name)"
# [[ref_fix]]
# op = "run"
# code = "torch.set_default_device(None)"
# [rerun]
# cells = [1, 2, 3, 4]

# %% utils copied from our repo
import time
import numpy as np
import torch

class timed_on:
    """with timed_on('cuda:1', 'fit'): ..."""
    def __init__(self, name, label):
        self.name, self.label = name, label
    def __enter__(self):
        torch.set_default_device(self.name)
        self.t0 = time.perf_counter()
        return self
    def __exit__(self, *exc):
        print(f'{self.label}: {time.perf_counter() - self.t0:.3f}s on {self.name}')
        return False

# %%
with timed_on(DEV2, 'ridge fit'):
    A = torch.rand(20, 4)
    b = A @ torch.arange(4.) + 1
    coef = torch.linalg.solve(A.T @ A + 0.1 * torch.eye(4), A.T @ b)

# %% discretise the target for the tree baseline (all on the host)
class Quantizer:
    def __init__(self, lo, hi, bins):
        edges = torch.linspace(lo, hi, bins + 1)
        self.edges = edges
    def __call__(self, v):
        return torch.bucketize(v, self.edges)

quantizer = Quantizer(0., 1., 8)

# %%
prices = torch.from_numpy(np.random.default_rng(3).random(30).astype('float32'))
codes = quantizer(prices)
counts = np.bincount(codes.numpy(), minlength=9)
