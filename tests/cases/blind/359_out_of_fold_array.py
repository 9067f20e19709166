# id = "359"
# cause = "to_numpy"
# also_causes = []
# culprit = "preds"
# also_culprit = ["torch.cat(preds)", "torch.cat(preds).sigmoid()", "preds[0]", "predict_fold(model, val_idx)"]
# culprit_cell = 4
# origin_cell = 3
# also_cells = [3]
# origin = "return torch.cat(preds).sigmoid()"
# culprit_device = "DEV"
# other_device = "HOST"
# fail_cell = 4
# fix_site = "a function in an earlier cell"
# visible = "raising frame"
# expect_after_fix = "oof.shape == (24,) and bool((oof > 0).all()) and next(model.parameters()).device == torch.device(DEV)"
# [[ref_fix]]
# op = "replace"
# cell = 3
# old = "return torch.cat(preds).sigmoid()"
# new = "return torch.cat(preds).sigmoid().cpu().numpy()"
# [rerun]
# cells = [3, 4]

# %%
import numpy as np
import torch
from torch import nn

class CFG:
    n_fold = 4
    seed = 42
    bs = 4
    device = DEV

# %%
rng = np.random.RandomState(CFG.seed)
train = rng.rand(24, 5).astype(np.float32)
target = (train.mean(1) > 0.5).astype(np.float32)
folds = rng.permutation(np.arange(24) % CFG.n_fold)

# %%
def train_fold(trn_idx):
    net = nn.Sequential(nn.Linear(5, 8), nn.Mish(), nn.Linear(8, 1)).to(CFG.device)
    opt = torch.optim.AdamW(net.parameters(), lr=1e-2)
    for start in range(0, len(trn_idx), CFG.bs):
        b = trn_idx[start:start + CFG.bs]
        x, y = torch.tensor(train[b]).to(CFG.device), torch.tensor(target[b]).to(CFG.device)
        loss = nn.functional.binary_cross_entropy_with_logits(net(x)[:, 0], y)
        loss.backward(); opt.step(); opt.zero_grad()
    return net

@torch.no_grad()
def predict_fold(net, idx):
    net.eval()
    preds = []
    for start in range(0, len(idx), CFG.bs):
        x = torch.tensor(train[idx[start:start + CFG.bs]]).to(CFG.device)
        preds.append(net(x)[:, 0])
    return torch.cat(preds).sigmoid()

# %%
oof = np.zeros(len(train), dtype=np.float32)
for fold in range(CFG.n_fold):
    trn_idx, val_idx = np.where(folds != fold)[0], np.where(folds == fold)[0]
    model = train_fold(trn_idx)
    preds = predict_fold(model, val_idx)
    oof[val_idx] = preds
print('CV acc:', ((oof > 0.5) == target).mean())
