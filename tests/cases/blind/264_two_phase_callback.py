# id = "264"
# cause = "optimizer_state"
# also_causes = []
# culprit = "run.opt.state"
# also_culprit = ["run.opt", "run.opt.state[run.model[0].weight]['momentum_buffer']"]
# culprit_cell = 3
# origin_cell = 4
# also_cells = [2, 5]
# origin = "run.model.to(self.where)"
# culprit_device = "HOST"
# other_device = "DEV"
# fail_cell = 5
# fix_site = "a user function in the traceback or an earlier cell"
# visible = "only in an object attribute (state of the optimizer)"
# expect_after_fix = "run.model[0].weight.device == torch.device(DEV) and len(run.losses) == 5"
# [[ref_fix]]
# op = "run"
# code = """
# for s in run.opt.state.values():
#     for k, v in s.items():
#         if torch.is_tensor(v):
#             s[k] = v.to(DEV)
# """
# [rerun]
# cells = [5]

# %%
import torch
import torch.nn as nn
from types import SimpleNamespace

torch.manual_seed(7)
X = torch.randn(16, 3)
y = X @ torch.tensor([1.0, -2.0, 0.5])

# %%
class Callback:
    def before_epoch(self, run): ...
    def after_epoch(self, run): ...

class Recorder(Callback):
    def after_epoch(self, run):
        run.losses.append(run.loss.item())

# %%
def fit(run, epochs):
    for run.epoch in range(run.epoch + 1, run.epoch + 1 + epochs):
        for cb in run.cbs: cb.before_epoch(run)
        dev = next(run.model.parameters()).device
        run.loss = nn.functional.mse_loss(run.model(X.to(dev)).squeeze(-1), y.to(dev))
        run.opt.zero_grad()
        run.loss.backward()
        run.opt.step()
        for cb in run.cbs: cb.after_epoch(run)
    return run

# %%
class BorrowCard(Callback):
    """the card is only free for the long part: the first `after` epochs run on the host"""
    def __init__(self, where, after):
        self.where, self.after = where, after
    def before_epoch(self, run):
        if run.epoch == self.after:
            run.model.to(self.where)

net = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
run = SimpleNamespace(model=net, opt=torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9),
                      cbs=[BorrowCard(DEV, after=2), Recorder()], epoch=-1, losses=[])
fit(run, epochs=2)

# %%
fit(run, epochs=3)
print(["%.3f" % l for l in run.losses])
