# id = "287"
# cause = "framework_moved_model"
# also_causes = ["model_not_moved"]
# culprit = "self.net"
# also_culprit = ["denoiser.net", "self.net[0]", "denoiser", "denoiser.net[0]"]
# culprit_cell = 2
# origin_cell = 4
# also_cells = [3, 5]
# origin = "card = describe(denoiser, sample_shape=(1, 1, 6))"
# culprit_device = "HOST"
# other_device = "DEV"
# fail_cell = 5
# fix_site = "library (a work-around in an earlier cell)"
# visible = "only in an object attribute"
# expect_after_fix = "clean.device == torch.device(DEV) and next(denoiser.parameters()).device == torch.device(DEV)"
# [[ref_fix]]
# op = "run"
# code = "denoiser.to(DEV)"

# %%
import importlib.util, sys, types
src = '''
import torch

class _Probe:
    """runs a module once on the host, to count what it does"""
    def __init__(self, module):
        self.module, self.rows = module, []
    def __enter__(self):
        self.module.cpu()
        self.hooks = [m.register_forward_hook(self.note) for m in self.module.modules() if not list(m.children())]
        return self
    def note(self, m, args, out):
        self.rows.append((type(m).__name__, tuple(out.shape), sum(p.numel() for p in m.parameters())))
    def __exit__(self, *exc):
        for h in self.hooks:
            h.remove()

def describe(module, sample_shape):
    with _Probe(module) as p, torch.no_grad():
        module(torch.zeros(sample_shape))
    return p.rows
'''
modelcard = types.ModuleType("modelcard")
exec(compile(src, "/usr/lib/python3/dist-packages/modelcard.py", "exec"), modelcard.__dict__)
sys.modules["modelcard"] = modelcard

# %%
import torch
from torch import nn

class Denoiser(nn.Module):
    def __init__(self, c=3):
        super().__init__()
        self.net = nn.Sequential(nn.Conv1d(1, c, 3, padding=1), nn.PReLU(), nn.Conv1d(c, 1, 3, padding=1))
    def forward(self, x):
        return x - self.net(x)

# %%
denoiser = Denoiser().to(DEV)
warm = denoiser(torch.zeros(1, 1, 6, device=DEV))

# %%
from modelcard import describe
card = describe(denoiser, sample_shape=(1, 1, 6))
for kind, shape, n in card:
    print(f"{kind:8s} {str(shape):14s} {n}")

# %%
ecg = torch.sin(torch.arange(24.0)).reshape(2, 1, 12).to(DEV)
clean = denoiser(ecg)
