# id = "367"
# cause = "nested_batch_partly_moved"
# also_causes = ["input_not_moved"]
# culprit = "static['labs']"
# also_culprit = ["static", "batch['static']", "batch['static']['labs']", "batch", "static['age']", "batch['static']['age']"]
# culprit_cell = 3
# origin_cell = 2
# also_cells = [4, 5]
# origin = "return {k: v.to(device, non_blocking=True) if torch.is_tensor(v) else v for k, v in batch.items()}"
# culprit_device = "HOST"
# other_device = "DEV"
# fail_cell = 5
# fix_site = "a function in an earlier cell"
# visible = "raising frame"
# expect_after_fix = "len(epoch) == 2 and risk.device == torch.device(DEV)"
# [[ref_fix]]
# op = "replace"
# cell = 2
# old = "    return {k: v.to(device, non_blocking=True) if torch.is_tensor(v) else v for k, v in batch.items()}"
# new = "    return {k: v.to(device, non_blocking=True) if torch.is_tensor(v) else to_device(v, device) if isinstance(v, dict) else v for k, v in batch.items()}"
# [rerun]
# cells = [2, 5]

# %%
import torch
from torch import nn
from torch.utils.data import Dataset, DataLoader

class ICUStays(Dataset):
    """vital signs per hour + what is known at admission"""
    def __init__(self, n):
        self.vitals = torch.rand(n, 6, 3)
        self.labs, self.age = torch.rand(n, 4), torch.randint(20, 90, (n,)).float()
        self.died = (torch.arange(n) % 3 == 0).float()
    def __len__(self):
        return len(self.died)
    def __getitem__(self, i):
        return {'stay_id': f'{i:05d}', 'vitals': self.vitals[i], 'died': self.died[i],
                'static': {'labs': self.labs[i], 'age': self.age[i]}}

# %%
def to_device(batch, device):
    """move what can be moved, leave the strings alone"""
    return {k: v.to(device, non_blocking=True) if torch.is_tensor(v) else v for k, v in batch.items()}

# %%
class RiskModel(nn.Module):
    def __init__(self, d=6):
        super().__init__()
        self.gru = nn.GRU(3, d, batch_first=True)
        self.out = nn.Linear(d + 4 + 1, 1)
    def forward(self, vitals, static, **ignored):
        _, h = self.gru(vitals)
        z = torch.cat([h[-1], static['labs'], static['age'].unsqueeze(1) / 100], dim=1)
        return self.out(z).squeeze(1)

# %%
net = RiskModel().to(DEV)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
loss_fn = nn.BCEWithLogitsLoss()
loader = DataLoader(ICUStays(8), batch_size=4)

# %%
epoch = []
for batch in loader:
    batch = to_device(batch, DEV)
    assert batch['vitals'].device == batch['died'].device
    risk = net(**batch)
    loss = loss_fn(risk, batch['died'])
    opt.zero_grad(); loss.backward(); opt.step()
    epoch.append(loss.item())
