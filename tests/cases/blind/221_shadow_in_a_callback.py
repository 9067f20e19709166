# id = "221"
# cause = "ema_shadow"
# also_causes = ["plain_tensor_attribute", "stale_cache"]
# culprit = "self.shadow[name]"
# also_culprit = ["self.shadow", "cb.shadow", "callbacks[0].shadow", "callbacks[0].shadow['0.weight']", "ema.shadow", "ema.shadow['0.weight']"]
# culprit_cell = 2
# origin_cell = 3
# also_cells = []
# origin = "callbacks = [EmaCallback(mlp, 0.9), Printer()]"
# culprit_device = "HOST"
# other_device = "DEV"
# fail_cell = 4
# fix_site = "earlier cell"
# visible = "only in an object attribute"
# expect_after_fix = "all(t.device == torch.device(DEV) for t in callbacks[0].shadow.values()) and len(history) >= 3 and all(p.device == torch.device(DEV) for p in mlp.parameters())"
# numbers = false
# # the failed cell had already made one optimizer step: a repair and an edit end at different weights
# [[ref_fix]]
# op = "run"
# code = "callbacks[0].shadow = {n: t.to(DEV) for n, t in callbacks[0].shadow.items()}"

# %%
import torch
from torch import nn

class Callback:
    def on_fit_start(self, loop): pass
    def on_step_end(self, loop, step): pass

class Printer(Callback):
    def on_step_end(self, loop, step):
        print(step, round(loop['loss'], 4))

# %%
class EmaCallback(Callback):
    def __init__(self, model, decay=0.999):
        self.model, self.decay = model, decay
        self.shadow = {n: p.detach().clone() for n, p in model.named_parameters()}

    @torch.no_grad()
    def on_step_end(self, loop, step):
        for name, p in self.model.named_parameters():
            self.shadow[name].mul_(self.decay).add_(p, alpha=1 - self.decay)

# %%
mlp = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
callbacks = [EmaCallback(mlp, 0.9), Printer()]
history = []

def fit(model, data, steps, callbacks):
    model.to(DEV)
    x, y = (t.to(DEV) for t in data)
    opt = torch.optim.SGD(model.parameters(), lr=0.05)
    for cb in callbacks:
        cb.on_fit_start({'model': model})
    for step in range(steps):
        loss = (model(x) - y).square().mean()
        opt.zero_grad(); loss.backward(); opt.step()
        history.append(loss.item())
        for cb in callbacks:
            cb.on_step_end({'loss': loss.item()}, step)

# %%
xs = torch.linspace(-1, 1, 20).view(5, 4)
fit(mlp, (xs, xs.prod(1, keepdim=True)), 3, callbacks)
