# id = "110"
# cause = "model_not_moved"
# also_causes = []
# culprit = "model"
# also_culprit = ["model.fc1", "self.fc1"]
# culprit_cell = 3
# origin_cell = 4
# also_cells = [1]
# origin = "model = Net(width=32)"
# culprit_device = "HOST"
# other_device = "DEV"
# fail_cell = 5
# fix_site = "earlier cell"
# visible = "only in an object attribute"
# expect_after_fix = "second.device == torch.device(DEV) and next(model.parameters()).device == torch.device(DEV)"
# [[ref_fix]]
# op = "replace"
# cell = 4
# old = "model = Net(width=32)"
# new = "model = Net(width=32).to(DEV)"
# [rerun]
# cells = [4, 5]

# %%
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.fc1 = nn.Linear(5, width)
        self.fc2 = nn.Linear(width, 2)
    def forward(self, x):
        return self.fc2(self.fc1(x).relu())

# %%
model = Net(width=8)
model.to(DEV)
xs, ys = torch.randn(20, 5).to(DEV), torch.randint(2, (20,)).to(DEV)

# %%
def train(steps=2):
    optimizer = torch.optim.Adam(model.parameters())
    for _ in range(steps):
        loss = nn.functional.cross_entropy(model(xs), ys)
        optimizer.zero_grad(); loss.backward(); optimizer.step()
    return loss.detach()

first = train()

# %%
# same again, wider
model = Net(width=32)
print(sum(p.numel() for p in model.parameters()), 'parameters')

# %%
second = train()
