# id = "304"
# cause = "label_not_moved"
# also_causes = ["input_not_moved"]
# culprit = "batch[self.cfg.target]"
# also_culprit = ["batch", "y", "y.unsqueeze(-1)", "batch['future']", "loader", "loader[0]", "loader[0]['future']"]
# culprit_cell = 3
# origin_cell = 3
# also_cells = [2]
# origin = "feats = {k: batch[k].to(self.device) for k in self.cfg.inputs}"
# culprit_device = "HOST"
# other_device = "DEV"
# fail_cell = 5
# fix_site = "class of the notebook"
# visible = "first user frame"
# expect_after_fix = "valid_loss.device == torch.device(DEV)"
# [[ref_fix]]
# op = "replace"
# cell = 3
# old = "self.loss_fn(y_hat, batch[self.cfg.target])"
# new = "self.loss_fn(y_hat, batch[self.cfg.target].to(self.device))"
# [rerun]
# cells = [3, 5]

# %%
import math, torch
from torch import nn
from types import SimpleNamespace

LOSSES = {}
def register(name):
    def deco(fn):
        LOSSES[name] = fn
        return fn
    return deco

# %%
@register("quantile")
def quantile_loss(y_hat, y, qs=(0.1, 0.5, 0.9)):
    err = y.unsqueeze(-1) - y_hat
    return torch.stack([torch.maximum(q * err[..., i], (q - 1) * err[..., i]) for i, q in enumerate(qs)]).mean()

@register("mae")
def mae(y_hat, y):
    return (y_hat[..., 1] - y).abs().mean()

class Forecaster(nn.Module):
    def __init__(self, lookback, horizon, n_cal):
        super().__init__()
        self.horizon = horizon
        self.net = nn.Sequential(nn.Linear(lookback + horizon * n_cal, 16), nn.ELU(), nn.Linear(16, horizon * 3))
    def forward(self, past, calendar):
        z = torch.cat([past, calendar.flatten(1)], dim=1)
        return self.net(z).view(-1, self.horizon, 3)

# %%
class Experiment:
    def __init__(self, cfg, model, device):
        self.cfg, self.model, self.device = cfg, model.to(device), device
        self.loss_fn = LOSSES[cfg.loss]

    def validation_step(self, batch):
        feats = {k: batch[k].to(self.device) for k in self.cfg.inputs}
        y_hat = self.model(**feats)
        return self.loss_fn(y_hat, batch[self.cfg.target])

    @torch.no_grad()
    def validate(self, loader):
        self.model.eval()
        return torch.stack([self.validation_step(b) for b in loader]).mean()

# %%
series = torch.sin(torch.arange(60) * 2 * math.pi / 12)
def windows(lookback=12, horizon=4, step=8):
    for s in range(0, len(series) - lookback - horizon, step):
        yield {'past': series[None, s:s + lookback],
               'future': series[None, s + lookback:s + lookback + horizon],
               'calendar': (torch.arange(horizon * 2).view(1, horizon, 2) % 7) / 7.0}
loader = list(windows())

# %%
cfg = SimpleNamespace(inputs=('past', 'calendar'), target='future', loss='quantile')
exp = Experiment(cfg, Forecaster(12, 4, 2), DEV)
valid_loss = exp.validate(loader)
