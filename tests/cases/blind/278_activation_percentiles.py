# id = "278"
# cause = "to_numpy"
# also_causes = []
# culprit = "values"
# also_culprit = ["self.seen[name]", "watch.seen['1']", "self.seen", "torch.cat(chunks)"]
# culprit_cell = 2
# origin_cell = 2
# also_cells = [4]
# origin = "self.seen.setdefault(name, []).append(output.detach().flatten())"
# culprit_device = "DEV"
# other_device = "HOST"
# fail_cell = 4
# fix_site = "class of the notebook"
# visible = "first user frame"
# expect_after_fix = "set(summary) == {'1', '3'} and all(float(v[0]) <= float(v[2]) for v in summary.values())"
# [[ref_fix]]
# op = "replace"
# cell = 2
# old = "output.detach().flatten()"
# new = "output.detach().flatten().cpu()"
# [rerun]
# cells = [2, 3, 4]

# %%
import numpy as np
import torch
from torch import nn

# %%
class ActivationWatch:
    def __init__(self, net, kinds):
        self.seen, self.handles = {}, []
        for name, m in net.named_modules():
            if isinstance(m, kinds):
                self.handles.append(m.register_forward_hook(self.hook_for(name)))

    def hook_for(self, name):
        def hook(module, args, output):
            self.seen.setdefault(name, []).append(output.detach().flatten())
        return hook

    def percentiles(self, q=(5, 50, 95)):
        res = {}
        for name, chunks in self.seen.items():
            values = torch.cat(chunks)
            res[name] = np.percentile(values, q)
        return res

# %%
mlp = nn.Sequential(nn.Linear(6, 10), nn.ReLU(), nn.Linear(10, 4), nn.Tanh()).to(DEV)
watch = ActivationWatch(mlp, kinds=(nn.ReLU, nn.Tanh))
for chunk in torch.randn(8, 6).split(4):
    mlp(chunk.to(DEV))
for h in watch.handles:
    h.remove()

# %%
summary = watch.percentiles()
for layer, (lo, mid, hi) in summary.items():
    print(f"{layer:>3}: {lo:+.2f} {mid:+.2f} {hi:+.2f}")
