# id = "363"
# cause = "module_added_after_move"
# also_causes = ["model_not_moved"]
# culprit = "self.head"
# also_culprit = ["net.head", "new", "net.head.weight", "self.head.weight"]
# culprit_cell = 2
# origin_cell = 2
# also_cells = [4]
# origin = "new = nn.Linear(old.in_features, old.out_features + n_new)"
# culprit_device = "HOST"
# other_device = "DEV"
# fail_cell = 5
# fix_site = "a method of a class"
# visible = "only in an object attribute"
# expect_after_fix = "task2_loss.device == torch.device(DEV) and net.head.out_features == 5 and net.head.weight.device == torch.device(DEV)"
# [[ref_fix]]
# op = "replace"
# cell = 2
# old = "new = nn.Linear(old.in_features, old.out_features + n_new)"
# new = "new = nn.Linear(old.in_features, old.out_features + n_new).to(old.weight.device)"
# [rerun]
# cells = [2, 3, 4, 5]

# %%
import copy
import torch
from torch import nn
import torch.nn.functional as F

# %%
class IncrementalNet(nn.Module):
    def __init__(self, n_classes, d=8):
        super().__init__()
        self.convnet = nn.Sequential(nn.Linear(6, d), nn.ReLU(), nn.Linear(d, d), nn.ReLU())
        self.head = nn.Linear(d, n_classes)

    def forward(self, x):
        return self.head(self.convnet(x))

    def update_fc(self, n_new):
        """more outputs, the old rows keep what they have learned"""
        old = self.head
        new = nn.Linear(old.in_features, old.out_features + n_new)
        with torch.no_grad():
            new.weight[:old.out_features] = old.weight
            new.bias[:old.out_features] = old.bias
        self.head = new

    def freeze(self):
        for p in self.parameters():
            p.requires_grad_(False)
        return self.eval()

# %%
def train_task(net, x, y, old_net=None, T=2.0):
    opt = torch.optim.SGD(net.parameters(), lr=0.1)
    for _ in range(2):
        logits = net(x)
        loss = F.cross_entropy(logits, y)
        if old_net is not None:                       # learning without forgetting
            q = F.softmax(old_net(x) / T, 1)
            p = F.log_softmax(logits[:, :q.size(1)] / T, 1)
            loss = loss + F.kl_div(p, q, reduction='batchmean')
        opt.zero_grad(); loss.backward(); opt.step()
    return loss.detach()

net = IncrementalNet(3).to(DEV)
task1_loss = train_task(net, torch.rand(9, 6).to(DEV), torch.arange(9).remainder(3).to(DEV))

# %%
old_net = copy.deepcopy(net).freeze()
net.update_fc(2)
print(net.head)

# %%
x2, y2 = torch.rand(8, 6), 3 + torch.arange(8) % 2
task2_loss = train_task(net, x2.to(DEV), y2.to(DEV), old_net)
