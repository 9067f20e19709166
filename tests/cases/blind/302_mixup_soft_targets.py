# id = "302"
# cause = "label_not_moved"
# also_causes = ["input_not_moved"]
# culprit = "labels"
# also_culprit = ["target", "y", "train_loader", "y.flip(0)"]
# culprit_cell = 4
# origin_cell = 4
# also_cells = [2]
# origin = "images = images.to(CFG.device, non_blocking=True)"
# culprit_device = "HOST"
# other_device = "DEV"
# fail_cell = 5
# fix_site = "a function in an earlier cell"
# visible = "raising frame"
# expect_after_fix = "all(isinstance(v, float) for v in log['loss']) and len(log['loss']) == 2 and net.fc.weight.grad.device == torch.device(DEV)"
# [[ref_fix]]
# op = "replace"
# cell = 4
# old = "images = images.to(CFG.device, non_blocking=True)"
# new = "images, labels = images.to(CFG.device, non_blocking=True), labels.to(CFG.device, non_blocking=True)"
# [rerun]
# cells = [4, 5]

# %%
import torch, torch.nn as nn, torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset
from collections import defaultdict

class CFG:
    device = DEV
    bs, lr, wd = 6, 3e-3, 1e-4
    num_classes = 5
    alpha, smoothing = 0.4, 0.1
    seed = 42

# %%
class Mixup:
    """batch mode only"""
    def __init__(self, alpha, smoothing, num_classes):
        self.beta = torch.distributions.Beta(alpha, alpha)
        self.smoothing, self.C = smoothing, num_classes

    def __call__(self, x, y):
        lam = self.beta.sample().item()
        y = F.one_hot(y, self.C).float() * (1 - self.smoothing) + self.smoothing / self.C
        return x * lam + x.flip(0) * (1 - lam), y * lam + y.flip(0) * (1 - lam)

class SoftTargetCrossEntropy(nn.Module):
    def forward(self, x, target):
        loss = torch.sum(-target * F.log_softmax(x, dim=-1), dim=-1)
        return loss.mean()

# %%
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3, padding=1)
        self.fc = nn.Linear(4, CFG.num_classes)
    def forward(self, x):
        return self.fc(F.relu(self.conv(x)).mean((2, 3)))

torch.manual_seed(CFG.seed)
train_ds = TensorDataset(torch.rand(12, 3, 6, 6), torch.randint(0, CFG.num_classes, (12,)))
train_loader = DataLoader(train_ds, batch_size=CFG.bs, shuffle=False)

# %%
def train_one_epoch(net, loader, opt, crit, mixup_fn=None):
    log = defaultdict(list)
    net.train()
    for images, labels in loader:
        images = images.to(CFG.device, non_blocking=True)
        if mixup_fn is not None:
            images, labels = mixup_fn(images, labels)
        loss = crit(net(images), labels)
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
        log['loss'].append(loss.item())
    return log

# %%
net = Net().to(CFG.device)
opt = torch.optim.SGD(net.parameters(), lr=CFG.lr, weight_decay=CFG.wd)
log = train_one_epoch(net, train_loader, opt, SoftTargetCrossEntropy(), Mixup(CFG.alpha, CFG.smoothing, CFG.num_classes))
