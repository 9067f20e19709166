# id = "348"
# cause = "optimizer_state"
# also_causes = ["stale_cache"]
# culprit = "exp_avg"
# also_culprit = ["state['exp_avg']", "self.state[p]['exp_avg']", "state", "opt.state[model.weight]['exp_avg']", "opt.state[model.weight]", "opt.state", "opt", "self.state"]
# culprit_cell = 2
# origin_cell = 4
# also_cells = [5]
# origin = "train(1)       # one pass on the host, only to see the loss go down"
# culprit_device = "HOST"
# other_device = "DEV"
# fail_cell = 5
# fix_site = "earlier cell"
# visible = "raising frame"
# expect_after_fix = "all(s['exp_avg'].device == torch.device(DEV) for s in opt.state.values()) and model.weight.device == torch.device(DEV)"
# [[ref_fix]]
# op = "run"
# code = "for slot in opt.state.values(): slot['exp_avg'] = slot['exp_avg'].to(DEV)"
# [rerun]
# cells = [5]

# %%
import torch
from torch import nn
from torch.optim.optimizer import Optimizer

# %%
class Lion(Optimizer):
    """Chen et al. 2023, a plain re-implementation"""
    def __init__(self, params, lr=1e-3, betas=(0.9, 0.99), weight_decay=0.0):
        super().__init__(params, dict(lr=lr, betas=betas, weight_decay=weight_decay))

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            b1, b2 = group['betas']
            for p in group['params']:
                if p.grad is None:
                    continue
                state = self.state[p]
                if len(state) == 0:
                    state['exp_avg'] = torch.zeros_like(p)
                exp_avg = state['exp_avg']
                update = exp_avg * b1 + p.grad * (1 - b1)
                p.mul_(1 - group['lr'] * group['weight_decay'])
                p.add_(update.sign_(), alpha=-group['lr'])
                exp_avg.mul_(b2).add_(p.grad, alpha=1 - b2)

# %%
model = nn.Linear(5, 2)
opt = Lion(model.parameters(), lr=0.02, weight_decay=0.01)
data = [(torch.rand(6, 5), torch.rand(6, 2)) for _ in range(2)]

def train(epochs):
    where = model.weight.device
    for _ in range(epochs):
        for x, y in data:
            opt.zero_grad()
            loss = (model(x.to(where)) - y.to(where)).pow(2).mean()
            loss.backward()
            opt.step()
    return loss.item()

# %%
train(1)       # one pass on the host, only to see the loss go down

# %%
# the real run
model.to(DEV)
history = [train(1) for _ in range(3)]
