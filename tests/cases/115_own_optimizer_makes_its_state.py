# id = "115"
# cause = "fresh_tensor_no_device"
# also_causes = ["optimizer_state"]
# culprit = "m"
# also_culprit = ["state['exp_avg']", "torch.zeros(p.shape, dtype=p.dtype)", "self.state[p]['exp_avg']", "lion.state[layer.weight]['exp_avg']", "lion.state", "lion", "state"]
# culprit_cell = 1
# origin_cell = 1
# also_cells = [3]
# origin = "state[\"exp_avg\"] = torch.zeros(p.shape, dtype=p.dtype)"
# culprit_device = "HOST"
# other_device = "DEV"
# fail_cell = 3
# fix_site = "class of the notebook"
# visible = "raising frame"
# expect_after_fix = "all(s['exp_avg'].device == torch.device(DEV) for s in lion.state.values()) and layer.weight.device == torch.device(DEV)"
# # the failed step has left a state on the host and the gradients of the first backward: layer and optimizer are made anew
# [[ref_fix]]
# op = "replace"
# cell = 1
# old = "torch.zeros(p.shape, dtype=p.dtype)"
# new = "torch.zeros_like(p)"
# [rerun]
# cells = [1, 2, 3]

# %%
import torch
from torch.optim.optimizer import Optimizer

class Lion(Optimizer):
    """sign of an interpolated momentum"""
    def __init__(self, params, lr=1e-3, betas=(0.9, 0.99)):
        super().__init__(params, dict(lr=lr, betas=betas))

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            b1, b2 = group["betas"]
            for p in group["params"]:
                if p.grad is None:
                    continue
                state = self.state[p]
                if "exp_avg" not in state:
                    state["exp_avg"] = torch.zeros(p.shape, dtype=p.dtype)
                m = state["exp_avg"]
                update = m * b1 + p.grad * (1 - b1)
                p.add_(update.sign(), alpha=-group["lr"])
                m.mul_(b2).add_(p.grad, alpha=1 - b2)

# %%
layer = torch.nn.Linear(3, 2).to(DEV)
lion = Lion(layer.parameters(), lr=0.01)

# %%
out = layer(torch.ones(4, 3, device=DEV))
out.pow(2).sum().backward()
lion.step()
lion.zero_grad()
