# id = "288"
# cause = "label_not_moved"
# also_causes = ["nested_batch_partly_moved"]
# culprit = "age"
# also_culprit = ["rest", "rest[0]"]
# culprit_cell = 4
# origin_cell = 2
# also_cells = [5]
# origin = "yield x.to(device, non_blocking=True), *rest"
# culprit_device = "HOST"
# other_device = "DEV"
# fail_cell = 5
# fix_site = "a user function of an earlier cell"
# visible = "first user frame (a member of a list)"
# expect_after_fix = "history and all(isinstance(v, float) for v in history) and model[0].weight.grad.device == torch.device(DEV)"
# [[ref_fix]]
# op = "replace"
# cell = 2
# old = "non_blocking=True), *rest"
# new = "non_blocking=True), *(r.to(device) for r in rest)"
# [rerun]
# cells = [2, 3, 4, 5]

# %%
# age from face landmarks, per-sample trust in the annotation
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

# %%
def prefetch(loader, device):
    for x, *rest in loader:
        yield x.to(device, non_blocking=True), *rest

# %%
faces = TensorDataset(torch.randn(8, 10), torch.rand(8) * 60 + 10, torch.ones(8))
loader = DataLoader(faces, batch_size=4)
model = nn.Sequential(nn.Linear(10, 6), nn.Softplus(), nn.Linear(6, 1), nn.Flatten(0)).to(DEV)

# %%
def trusted_huber(out, age, trust, delta=5.0):
    return (nn.functional.huber_loss(out, age, reduction="none", delta=delta) * trust).mean()

def epoch(model, stream, loss_fn, opt):
    for x, *rest in stream:
        loss = loss_fn(model(x), *rest)
        opt.zero_grad()
        loss.backward()
        opt.step()
        yield float(loss)

# %%
sgd = torch.optim.SGD(model.parameters(), lr=1e-4)
history = [v for v in epoch(model, prefetch(loader, DEV), trusted_huber, sgd)]
