# id = "358"
# cause = "default_device_global"
# also_causes = ["input_not_moved"]
# culprit = "X_test"
# also_culprit = ["as_tensors(test_df)[0]", "as_tensors(test_df)"]
# culprit_cell = 5
# origin_cell = 3
# also_cells = [3]
# origin = "return torch.from_numpy(feats), torch.tensor(frame['target'])"
# culprit_device = "HOST"
# other_device = "DEV"
# fail_cell = 5
# fix_site = "a function in an earlier cell"
# visible = "first user frame"
# expect_after_fix = "rmse.device == torch.device(DEV)"
# # from_numpy shares the array's memory, it takes no notice of the default device; torch.tensor does
# [[ref_fix]]
# op = "replace"
# cell = 3
# old = "torch.from_numpy(feats)"
# new = "torch.tensor(feats)"
# [rerun]
# cells = [3, 5]

# %%
import numpy as np
import torch
from torch import nn

# everything on the card from here on, no more .to() everywhere
torch.set_default_device(DEV)

# %%
def fake_frame(n, seed):
    r = np.random.default_rng(seed)
    cols = {c: r.random(n, dtype=np.float32) for c in ('sqft', 'rooms', 'age')}
    cols['target'] = cols['sqft'] * 3 + cols['rooms']
    return cols

train_df, test_df = fake_frame(24, 0), fake_frame(10, 1)

# %%
def as_tensors(frame):
    feats = np.stack([frame[c] for c in ('sqft', 'rooms', 'age')], axis=1)
    return torch.from_numpy(feats), torch.tensor(frame['target'])

# %%
model = nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Linear(8, 1))
opt = torch.optim.SGD(model.parameters(), lr=0.05)
X_train = torch.tensor(np.stack([train_df[c] for c in ('sqft', 'rooms', 'age')], 1))
y_train = torch.tensor(train_df['target'])
for _ in range(3):
    loss = (model(X_train).squeeze(-1) - y_train).pow(2).mean()
    opt.zero_grad(); loss.backward(); opt.step()
print(loss.device)

# %%
X_test, y_test = as_tensors(test_df)
model.eval()
with torch.no_grad():
    rmse = (model(X_test).squeeze(-1) - y_test).pow(2).mean().sqrt()
