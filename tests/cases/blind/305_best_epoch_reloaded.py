# id = "305"
# cause = "model_not_moved"
# also_causes = []
# culprit = "best"
# also_culprit = ["net", "best.features", "net.features"]
# culprit_cell = 5
# origin_cell = 5
# also_cells = [2]
# origin = "best = build(**stopper.best['hparams'])"
# culprit_device = "HOST"
# other_device = "DEV"
# fail_cell = 5
# fix_site = "earlier cell"
# visible = "only in an object attribute"
# expect_after_fix = "test_probs.device == torch.device(DEV)"
# [[ref_fix]]
# op = "replace"
# cell = 5
# old = "best = build(**stopper.best['hparams'])"
# new = "best = build(**stopper.best['hparams']).to(device)"
# [rerun]
# cells = [5]

# %%
import io, torch
from torch import nn

device = torch.device(DEV)
beats = torch.randn(10, 1, 32)          # single-lead ECG, 32 samples a beat
kinds = torch.randint(0, 4, (10,))

# %%
class ECGNet(nn.Module):
    def __init__(self, width=4, n_classes=4):
        super().__init__()
        self.features = nn.Sequential(nn.Conv1d(1, width, 5, padding=2), nn.ReLU(), nn.AdaptiveAvgPool1d(4))
        self.head = nn.Linear(width * 4, n_classes)
    def forward(self, x):
        return self.head(self.features(x).flatten(1))

def build(**hparams):
    return ECGNet(**hparams)

def predict_proba(net, X, bs=4):
    net.eval()
    with torch.no_grad():
        return torch.cat([net(xb.to(device)).softmax(-1) for xb in X.split(bs)])

# %%
class EarlyStopping:
    def __init__(self, patience=2):
        self.patience, self.best_score, self.bad = patience, float('inf'), 0
    def __call__(self, score, model, hparams):
        if score < self.best_score:
            self.best_score, self.bad = score, 0
            buf = io.BytesIO()
            torch.save(model.state_dict(), buf)
            self.best = {'hparams': hparams, 'weights': buf.getvalue()}
        else:
            self.bad += 1
        return self.bad >= self.patience

# %%
hp = dict(width=6)
model = build(**hp).to(device)
opt = torch.optim.Adam(model.parameters(), lr=1e-2)
stopper = EarlyStopping()
for epoch in range(3):
    loss = nn.functional.cross_entropy(model(beats.to(device)), kinds.to(device))
    opt.zero_grad(); loss.backward(); opt.step()
    if stopper(loss.item(), model, hp):
        break
print(predict_proba(model, beats)[0])

# %%
# last epoch is overfitted, take the best one
best = build(**stopper.best['hparams'])
best.load_state_dict(torch.load(io.BytesIO(stopper.best['weights'])))
test_probs = predict_proba(best, beats)
