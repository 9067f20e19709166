# id = "395"
# cause = "optimizer_state"
# also_causes = []
# culprit = "self.opt"
# also_culprit = ["cal.opt", "self.opt.state", "cal.opt.state", "self.opt.state[self.scaler.log_t]['prev_flat_grad']", "cal.opt.state[scaler.log_t]['prev_flat_grad']", "cal.opt.state[scaler.log_t]['d']"]
# culprit_cell = 3
# origin_cell = 4
# also_cells = [5]
# origin = "cal.fit(scaler, val_logits[:20], val_y[:20])       # a first guess while the card was busy"
# culprit_device = "HOST"
# other_device = "DEV"
# fail_cell = 5
# fix_site = "earlier cell"
# visible = "raising frame"
# expect_after_fix = "nll.device == torch.device(DEV) and scaler.log_t.device == torch.device(DEV) and bool(torch.isfinite(nll))"
# # only the memory of LBFGS stayed behind: its parameters are the moved ones
# [[ref_fix]]
# op = "replace"
# cell = 5
# old = "scaler.to(DEV)"
# new = "scaler.to(DEV); cal.opt = None"
# [rerun]
# cells = [5]

# %%
import torch
import torch.nn.functional as F
from torch import nn

# %%
class VectorScaler(nn.Module):
    """per-class temperatures for a calibrated softmax"""
    def __init__(self, n):
        super().__init__()
        self.log_t = nn.Parameter(torch.full((n,), 0.4))
    def forward(self, logits):
        return logits * torch.exp(-self.log_t)

# %%
class Calibrator:
    def __init__(self, **kw):
        self.kw, self.opt = kw, None

    def _closure(self, scaler, logits, y):
        def closure():
            self.opt.zero_grad()
            loss = F.cross_entropy(scaler(logits), y)
            loss.backward()
            return loss
        return closure

    def fit(self, scaler, logits, y):
        self.scaler = scaler
        if self.opt is None:
            self.opt = torch.optim.LBFGS(scaler.parameters(), **self.kw)
        self.opt.step(self._closure(scaler, logits, y))
        return F.cross_entropy(scaler(logits), y).detach()

# %%
g = torch.Generator().manual_seed(3)
val_y = torch.randint(4, (80,), generator=g)
val_logits = 3 * F.one_hot(val_y, 4).float() + 2 * torch.randn(80, 4, generator=g)
scaler = VectorScaler(4)
cal = Calibrator(lr=0.1, max_iter=5)
cal.fit(scaler, val_logits[:20], val_y[:20])       # a first guess while the card was busy

# %%
scaler.to(DEV)
nll = cal.fit(scaler, val_logits.to(DEV), val_y.to(DEV))
