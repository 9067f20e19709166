# id = "377"
# cause = "model_split_multi_gpu"
# also_causes = []
# culprit = "term"
# also_culprit = ["extras[name]", "extras", "extras['early']", "net.balance['early']", "net.balance", "self.balance[name]"]
# culprit_cell = 3
# origin_cell = 2
# also_cells = [4]
# origin = "self.balance[name] = stage.balance"
# culprit_device = "DEV"
# other_device = "DEV2"
# fail_cell = 4
# fix_site = "a function in an earlier cell"
# visible = "raising frame"
# expect_after_fix = "loss.device == torch.device(DEV2) and net.stages['early'].gate.weight.grad is not None and net.stages['late'].gate.weight.grad.device == torch.device(DEV2)"
# needs = "DEV2"
# [[ref_fix]]
# op = "replace"
# cell = 3
# old = "total = total + weight * term"
# new = "total = total + weight * term.to(total.device)"
# [rerun]
# cells = [3, 4]

# %%
import torch
from torch import nn

class ExpertStage(nn.Module):
    def __init__(self, width, n_experts, device):
        super().__init__()
        self.device = device
        self.gate = nn.Linear(width, n_experts, bias=False)
        self.experts = nn.ModuleList(nn.Linear(width, width) for _ in range(n_experts))
        self.balance = None
        self.to(device)

    def forward(self, x):
        p = self.gate(x).softmax(-1)
        usage = p.mean(0)
        self.balance = len(self.experts) * usage.square().sum()
        mixed = sum(w.unsqueeze(-1) * e(x) for w, e in zip(p.unbind(-1), self.experts))
        return x + torch.relu(mixed)

# %%
class TwoCardNet(nn.Module):
    """half of the stages on each card"""
    def __init__(self, width, devices):
        super().__init__()
        self.stages = nn.ModuleDict({n: ExpertStage(width, 3, d) for n, d in zip(("early", "late"), devices)})
        self.head = nn.Linear(width, 2).to(devices[-1])
        self.balance = {}

    def forward(self, x):
        for name, stage in self.stages.items():
            x = stage(x.to(stage.device))
            self.balance[name] = stage.balance
        return self.head(x)

# %%
def objective(out, y, extras, weight=0.01):
    total = nn.functional.cross_entropy(out, y.to(out.device))
    for name, term in sorted(extras.items(), reverse=True):
        total = total + weight * term
    return total

# %%
net = TwoCardNet(6, [DEV, DEV2])
x, y = torch.randn(10, 6), torch.randint(2, (10,))
loss = objective(net(x), y, net.balance)
loss.backward()
