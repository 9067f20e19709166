# id = "194"
# cause = "label_not_moved"
# also_causes = ["input_not_moved", "fresh_tensor_no_device"]
# culprit = "tb"
# also_culprit = ["soft", "torch.from_numpy(smooth(df[\"y\"][sl], 3))"]
# culprit_cell = 4
# origin_cell = 4
# also_cells = [2]
# origin = "tb = torch.from_numpy(smooth(df[\"y\"][sl], 3))"
# culprit_device = "HOST"
# other_device = "DEV"
# fail_cell = 4
# fix_site = "cell line that failed"
# visible = "first user frame"
# expect_after_fix = "loss.device == torch.device(DEV) and net.weight.device == torch.device(DEV)"
# [[ref_fix]]
# op = "replace"
# cell = 4
# old = "torch.from_numpy(smooth(df[\"y\"][sl], 3))"
# new = "torch.from_numpy(smooth(df[\"y\"][sl], 3)).to(DEV)"

# %%
import numpy as np
import torch
from torch import nn
!echo "fold 0"
rng = np.random.default_rng(1)
df = {"x": rng.normal(size=(12, 5)).astype("float32"), "y": rng.integers(0, 3, size=12)}

# %%
def smooth(y, k, eps=0.1):
    t = np.full((len(y), k), eps / k, dtype=np.float32)
    t[np.arange(len(y)), y] += 1 - eps
    return t

class SoftCE(nn.Module):
    def forward(self, logits, soft):
        return -(soft * logits.log_softmax(-1)).sum(-1).mean()

# %%
net = nn.Linear(5, 3).to(DEV)
crit, opt = SoftCE(), torch.optim.RMSprop(net.parameters(), lr=1e-2)

# %%
for start in range(0, 12, 6):
    sl = slice(start, start + 6)
    xb = torch.as_tensor(df["x"][sl], device=DEV)
    tb = torch.from_numpy(smooth(df["y"][sl], 3))
    opt.zero_grad()
    loss = crit(net(xb), tb)
    loss.backward()
    opt.step()
