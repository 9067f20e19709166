# id = "147"
# cause = "module_added_after_move"
# also_causes = ["model_not_moved"]
# culprit = "model_ft.fc"
# also_culprit = ["self.fc", "model_ft.fc.weight", "self.fc.weight", "model_ft"]
# culprit_cell = 1
# origin_cell = 3
# also_cells = [4]
# origin = "model_ft.fc = nn.Linear(num_ftrs, 2)"
# culprit_device = "HOST"
# other_device = "DEV"
# fail_cell = 4
# fix_site = "earlier cell"
# visible = "only in an object attribute"
# expect_after_fix = "outputs.device == torch.device(DEV)"
# [[ref_fix]]
# op = "replace"
# cell = 3
# old = "nn.Linear(num_ftrs, 2)"
# new = "nn.Linear(num_ftrs, 2).to(DEV)"
# [rerun]
# cells = [3, 4]

# %%
import torch
from torch import nn

class ResNetish(nn.Module):
    def __init__(self, num_classes=10):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 6, 3, stride=2)
        self.bn1 = nn.BatchNorm2d(6)
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        self.fc = nn.Linear(6, num_classes)
    def forward(self, x):
        x = self.bn1(self.conv1(x)).relu()
        return self.fc(self.avgpool(x).flatten(1))

# %%
model_ft = ResNetish()
model_ft = model_ft.to(DEV)

# %%
for p in model_ft.parameters(): p.requires_grad = False
num_ftrs = model_ft.fc.in_features
model_ft.fc = nn.Linear(num_ftrs, 2)

# %%
inputs = torch.rand(4, 3, 9, 9).to(DEV)
outputs = model_ft(inputs)
_, best = torch.max(outputs, 1)
