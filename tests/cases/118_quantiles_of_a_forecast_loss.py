# id = "118"
# cause = "plain_tensor_attribute"
# also_causes = ["loss_weight"]
# culprit = "self.q"
# also_culprit = ["loss_fn.q", "loss_fn"]
# culprit_cell = 1
# origin_cell = 1
# also_cells = [2, 3]
# origin = "self.q = t.tensor(quantiles)"
# culprit_device = "HOST"
# other_device = "DEV"
# fail_cell = 4
# fix_site = "class __init__"
# visible = "only in an object attribute"
# expect_after_fix = "tl.device == torch.device(DEV) and tl.ndim == 0"
# [[ref_fix]]
# op = "replace"
# cell = 1
# old = "self.q = t.tensor(quantiles)"
# new = "self.register_buffer(\"q\", t.tensor(quantiles))"
# [rerun]
# cells = [1, 2, 4]

# %%
import torch as t
import torch
from torch.nn import Module, Linear, Sequential, ReLU

class PinballLoss(Module):
    """quantile loss of a forecast; q: (n_q,), y_hat: (batch, n_q)"""
    def __init__(self, quantiles):
        super().__init__()
        self.q = t.tensor(quantiles)

    def forward(self, y_hat, y):
        err = y.unsqueeze(-1) - y_hat
        return t.maximum(self.q * err, (self.q - 1) * err).mean()

# %%
qs = [0.1, 0.5, 0.9]
forecaster = Sequential(Linear(12, 8), ReLU(), Linear(8, len(qs))).to(DEV)
loss_fn = PinballLoss(qs).to(DEV)

# %%
def epoch(windows):
    total = 0.
    for past, future in windows:
        loss = loss_fn(forecaster(past.to(DEV)), future.to(DEV))
        loss.backward()
        total += loss.detach()
    return total / len(windows)

# %%
tl = epoch([(t.randn(4, 12), t.randn(4)) for _ in range(2)])
