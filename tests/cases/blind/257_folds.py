# id = "257"
# cause = "model_not_moved"
# also_causes = []
# culprit = "net"
# also_culprit = ["bag[fold]", "net[0]", "bag[1]", "init"]
# culprit_cell = 4
# origin_cell = 3
# also_cells = [2, 5]
# origin = "bag.append(make(**HPARAMS))"
# culprit_device = "HOST"
# other_device = "DEV"
# fail_cell = 5
# fix_site = "an earlier cell"
# visible = "only in an object attribute (the layers of the model)"
# expect_after_fix = "len(oof) == 3 and all(v.device == torch.device(DEV) for v in oof)"
# [[ref_fix]]
# op = "replace"
# cell = 3
# old = "bag.append(make(**HPARAMS))"
# new = "bag.append(make(**HPARAMS).to(bag[0][0].weight.device))"
# [rerun]
# cells = [3, 5]

# %%
import copy
import numpy as np, torch, torch.nn as nn
rng = np.random.default_rng(2021)
train_x = rng.normal(size=(12, 5)).astype("float32")
train_y = (train_x.sum(1) > 0).astype("float32")
HPARAMS = dict(width=6, drop=0.0)
N_FOLDS = 3

# %%
def make(width, drop):
    return nn.Sequential(nn.Linear(5, width), nn.BatchNorm1d(width), nn.ReLU(), nn.Dropout(drop), nn.Linear(width, 1))

# %%
model = make(**HPARAMS).to(DEV)
bag = [model]
for seed in range(1, N_FOLDS):          # one model per fold, the first is the one tuned above
    torch.manual_seed(seed)
    bag.append(make(**HPARAMS))

# %%
def run_fold(init, tr, va, epochs=2):
    net = copy.deepcopy(init)           # cells get run twice, weights should not
    opt = torch.optim.SGD(net.parameters(), lr=0.05)
    X, Y = (torch.as_tensor(a[tr], device=DEV) for a in (train_x, train_y))
    for _ in range(epochs):
        net.train()
        logit = net(X).squeeze(1)
        loss = nn.functional.binary_cross_entropy_with_logits(logit, Y)
        opt.zero_grad()
        loss.backward()
        opt.step()
    net.eval()
    with torch.no_grad():
        return net(torch.as_tensor(train_x[va], device=DEV)).sigmoid()

# %%
idx = np.arange(12) % N_FOLDS
oof = []
for fold in range(N_FOLDS):
    oof.append(run_fold(bag[fold], np.flatnonzero(idx != fold), np.flatnonzero(idx == fold)))
