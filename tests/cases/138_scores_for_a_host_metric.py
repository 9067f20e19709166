# id = "138"
# cause = "to_numpy"
# also_causes = []
# culprit = "y_hat"
# also_culprit = ["y_score", "preds"]
# culprit_cell = 4
# origin_cell = 3
# also_cells = [1]
# origin = "y_hat, y = torch.cat(preds), torch.cat(targs)"
# culprit_device = "DEV"
# other_device = "HOST"
# fail_cell = 4
# fix_site = "cell line that failed"
# visible = "first user frame"
# expect_after_fix = "isinstance(auc, float) and len(y_hat) == 12"
# [[ref_fix]]
# op = "replace"
# cell = 4
# old = "roc_auc(y, y_hat)"
# new = "roc_auc(y, y_hat.cpu())"

# %%
import numpy as np
import torch
from torch import nn

def roc_auc(y_true, y_score):
    """as the metrics libraries do: arrays in, a float out"""
    y_true, y_score = np.asarray(y_true), np.asarray(y_score)
    pos, neg = y_score[y_true == 1], y_score[y_true == 0]
    return float((pos[:, None] > neg[None, :]).mean())

# %%
model = nn.Sequential(nn.Linear(4, 1), nn.Flatten(0)).to(DEV)
val = [(torch.randn(6, 4), torch.tensor([0, 1, 0, 1, 1, 0])) for _ in range(2)]

# %%
model.eval()
preds, targs = [], []
with torch.no_grad():
    for xb, yb in val:
        preds.append(model(xb.to(DEV)).sigmoid())
        targs.append(yb)
y_hat, y = torch.cat(preds), torch.cat(targs)

# %%
auc = roc_auc(y, y_hat)
print(f"AUC = {auc:.3f}")
