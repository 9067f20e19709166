# id = "156"
# cause = "label_not_moved"
# also_causes = ["nested_batch_partly_moved", "input_not_moved"]
# culprit = "tgt[\"boxes\"]"
# also_culprit = ["gt", "tgt", "targets", "targets[0]['boxes']", "data", "gt.mean(0)", "data[0][1]['boxes']"]
# culprit_cell = 1
# origin_cell = 3
# also_cells = [2, 4]
# origin = "targets = [{k: v for k, v in t.items()} for t in targets]"
# culprit_device = "HOST"
# other_device = "DEV"
# fail_cell = 4
# fix_site = "a function in an earlier cell"
# visible = "raising frame"
# expect_after_fix = "loss.device == torch.device(DEV)"
# [[ref_fix]]
# op = "replace"
# cell = 3
# old = "{k: v for k, v in t.items()}"
# new = "{k: v.to(device) for k, v in t.items()}"
# [rerun]
# cells = [3, 4]

# %%
import torch
from torch import nn

def box_loss(pred, targets):
    total = pred.new_zeros(())
    for p, tgt in zip(pred, targets):
        gt = tgt["boxes"]
        total = total + (p - gt.mean(0)).abs().sum()
    return total / len(targets)

# %%
data = [
    (torch.rand(3, 6, 6), {"boxes": torch.rand(n, 4), "labels": torch.ones(n, dtype=torch.long)})
    for n in (1, 3)
]
detector = nn.Sequential(nn.Conv2d(3, 4, 3), nn.AdaptiveMaxPool2d(1), nn.Flatten(), nn.Linear(4, 4)).to(DEV)

# %%
def train_one_epoch(model, optimizer, data_loader, device):
    model.train()
    for images, targets in data_loader:
        images = torch.stack(list(images)).to(device)
        targets = [{k: v for k, v in t.items()} for t in targets]
        loss = box_loss(model(images), targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return loss.detach()

# %%
loss = train_one_epoch(detector, torch.optim.SGD(detector.parameters(), 0.01), [list(zip(*data))], DEV)
