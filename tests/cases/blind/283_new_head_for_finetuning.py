# id = "283"
# cause = "module_added_after_move"
# also_causes = []
# culprit = "self.fc"
# also_culprit = ["net.fc", "self.fc[1]", "net.fc[1]", "self.fc[0]"]
# culprit_cell = 2
# origin_cell = 4
# also_cells = [3, 5]
# origin = "surgery(net, 'fc', lambda old: nn.Sequential(nn.LayerNorm(old.in_features), nn.Linear(old.in_features, 4)))"
# culprit_device = "HOST"
# other_device = "DEV"
# fail_cell = 5
# fix_site = "an earlier cell"
# visible = "only in an object attribute"
# expect_after_fix = "all(p.device == torch.device(DEV) for p in net.parameters()) and net.fc[1].weight.grad is not None"
# [[ref_fix]]
# op = "replace"
# cell = 3
# old = "new = make(old)"
# new = "new = make(old).to(old.weight.device)"
# [rerun]
# cells = [2, 3, 4, 5]

# %%
import torch
from torch import nn

# %%
class SmallResNet(nn.Module):
    """imagine torchvision's"""
    def __init__(self, classes=10):
        super().__init__()
        self.conv = nn.Conv2d(3, 6, 3, bias=False)
        self.bn = nn.BatchNorm2d(6)
        self.fc = nn.Linear(6, classes)

    def features(self, x):
        return self.bn(self.conv(x)).relu().mean((-2, -1))

    def forward(self, x):
        return self.fc(self.features(x))

net = SmallResNet().to(DEV)

# %%
def surgery(model, path, make):
    """replace the module at a dotted path, freeze everything else"""
    *parents, leaf = path.split(".")
    owner = model.get_submodule(".".join(parents))
    old = getattr(owner, leaf)
    new = make(old)
    model.requires_grad_(False).eval()      # batch norm keeps its statistics
    setattr(owner, leaf, new)
    return [p for p in model.parameters() if p.requires_grad]

# %%
trainable = surgery(net, 'fc', lambda old: nn.Sequential(nn.LayerNorm(old.in_features), nn.Linear(old.in_features, 4)))
opt = torch.optim.SGD(trainable, lr=0.01)

# %%
pics, kinds = torch.rand(4, 3, 6, 6, device=DEV), torch.arange(4, device=DEV)
loss = nn.functional.cross_entropy(net(pics), kinds)
loss.backward()
opt.step()
