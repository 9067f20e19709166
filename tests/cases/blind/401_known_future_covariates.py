# id = "401"
# cause = "input_not_moved"
# also_causes = ["stray_in_collection", "nested_batch_partly_moved"]
# culprit = "known"
# also_culprit = ["future", "window.future", "cov", "known.unsqueeze(1)", "w.future", "window"]
# culprit_cell = 3
# origin_cell = 4
# also_cells = [2, 5]
# origin = "past = window.past.to(device)"
# culprit_device = "HOST"
# other_device = "DEV"
# fail_cell = 5
# fix_site = "a function in an earlier cell"
# visible = "raising frame"
# expect_after_fix = "sheet.device == torch.device(DEV) and sheet.shape == (5, 2, 3)"
# [[ref_fix]]
# op = "replace"
# cell = 4
# old = "forecaster(past, window.future)"
# new = "forecaster(past, window.future.to(device))"
# [rerun]
# cells = [4, 5]

# %%
import torch
from torch import nn
from collections import namedtuple

Window = namedtuple("Window", "past future")          # (b, t, 1) and (b, h, 2)

# %%
def windows(series, calendar, look_back=8, horizon=3, size=2):
    rows = []
    for s in range(0, len(series) - look_back - horizon, 3):
        m = s + look_back
        rows.append((series[s:m, None], calendar[m:m + horizon]))
        if len(rows) == size:
            yield Window(*map(torch.stack, zip(*rows)))
            rows = []

# %%
class Seq2Seq(nn.Module):
    def __init__(self, hidden=6, n_known=2):
        super().__init__()
        self.encoder = nn.GRU(1, hidden, batch_first=True)
        self.cell = nn.GRUCell(1 + n_known, hidden)
        self.read = nn.Linear(hidden, 1)

    def forward(self, y, future):
        _, h = self.encoder(y)
        h, last = h[-1], y[:, -1]
        steps = []
        for known in future.unbind(dim=1):
            h = self.cell(torch.cat([last, known], dim=-1), h)
            last = self.read(h)
            steps.append(last)
        return torch.cat(steps, dim=-1)

# %%
def backtest(forecaster, source):
    device = next(forecaster.parameters()).device
    forecaster.eval()
    for window in source:
        past = window.past.to(device)
        with torch.no_grad():
            yield forecaster(past, window.future)

# %%
t = torch.arange(40.)
source = windows(torch.sin(t / 3), torch.stack([(t % 7) / 7, (t % 30) / 30], dim=-1))
sheet = torch.stack(list(backtest(Seq2Seq().to(DEV), source)))
