# id = "374"
# cause = "optimizer_state"
# also_causes = ["checkpoint_location"]
# culprit = "numer"
# also_culprit = ["group['numer']", "group", "self.param_groups[0]['numer']", "self.param_groups", "opt.param_groups[0]['numer']", "opt.param_groups[0]", "opt.param_groups", "opt"]
# culprit_cell = 2
# origin_cell = 4
# also_cells = [4, 5]
# origin = "opt.load_state_dict(saved['opt'])"
# culprit_device = "HOST"
# other_device = "DEV"
# fail_cell = 5
# fix_site = "checkpoint load"
# visible = "raising frame"
# expect_after_fix = "opt.param_groups[0]['numer'].device == torch.device(DEV) and opt.param_groups[0]['k'] == 3 and net[0].weight.device == torch.device(DEV)"
# # Optimizer.load_state_dict() moves the state of each parameter, not what the groups hold
# [[ref_fix]]
# op = "run"
# code = "opt.param_groups[0]['numer'] = opt.param_groups[0]['numer'].to(DEV)"

# %%
import io
import torch
from torch import nn

device = torch.device(DEV)

# %%
class DistanceSGD(torch.optim.Optimizer):
    """finds its own step size from the distance to the start"""

    def __init__(self, params, d0=1e-2, growth=1.5):
        super().__init__(params, dict(d=d0, growth=growth, k=0, numer=None))

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            live = [p for p in group["params"] if p.grad is not None]
            if group["numer"] is None:
                group["numer"] = torch.zeros(1, device=live[0].device)
            for p in live:
                st = self.state[p]
                if not st:
                    st["start"] = p.clone()
                    st["s"] = torch.zeros_like(p)
            numer = group["numer"]
            for p in live:
                inner = (p.grad * (self.state[p]["start"] - p)).sum()
                numer = numer + group["d"] * inner
            for p in live:
                self.state[p]["s"].add_(p.grad, alpha=group["d"])
            denom = sum(self.state[p]["s"].abs().sum() for p in live)
            group["d"] = max(group["d"], min(float(numer / denom), group["d"] * group["growth"]))
            for p in live:
                p.add_(p.grad, alpha=-group["d"])
            group["numer"], group["k"] = numer, group["k"] + 1

# %%
def make():
    net = nn.Sequential(nn.Linear(6, 10), nn.Tanh(), nn.Linear(10, 2)).to(device)
    return net, DistanceSGD(net.parameters())

def train_step(net, opt):
    x = torch.randn(8, 6).to(device)
    opt.zero_grad()
    net(x).square().mean().backward()
    opt.step()

net, opt = make()
for _ in range(2):
    train_step(net, opt)
f = io.BytesIO()
torch.save({"net": net.state_dict(), "opt": opt.state_dict()}, f)

# %%
# the kernel died over night, go on from the file
f.seek(0)
saved = torch.load(f, map_location=HOST)
net, opt = make()
net.load_state_dict(saved["net"])
opt.load_state_dict(saved['opt'])

# %%
train_step(net, opt)
