# id = "248"
# cause = "closure_constant"
# also_causes = ["fresh_tensor_no_device"]
# culprit = "log_prior"
# also_culprit = ["tau * log_prior", "torch.tensor(counts, dtype=torch.float).div(sum(counts)).log()", "LOSSES['logit_adjusted']", "LOSSES"]
# culprit_cell = 2
# origin_cell = 2
# also_cells = [3, 4]
# origin = "log_prior = torch.tensor(counts, dtype=torch.float).div(sum(counts)).log()"
# culprit_device = "HOST"
# other_device = "DEV"
# fail_cell = 5
# fix_site = "a user function in the traceback"
# visible = "raising frame"
# expect_after_fix = "set(table) == {'plain', 'logit_adjusted'} and all(v.device == torch.device(DEV) for v in table.values())"
# [[ref_fix]]
# op = "replace"
# cell = 2
# old = "loss_fn(logits + tau * log_prior, target"
# new = "loss_fn(logits + tau * log_prior.to(logits.device), target"
# [rerun]
# cells = [1, 2, 3, 4, 5]

# %%
import functools
import torch
from torch import nn
import torch.nn.functional as F

LOSSES = {}

def loss(name):
    return lambda fn: LOSSES.setdefault(name, fn)

# %% long-tail learning via logit adjustment (Menon et al.)
def adjusted_by(counts, tau=1.0):
    log_prior = torch.tensor(counts, dtype=torch.float).div(sum(counts)).log()
    def deco(loss_fn):
        @functools.wraps(loss_fn)
        def wrapper(logits, target, **kw):
            return loss_fn(logits + tau * log_prior, target, **kw)
        return wrapper
    return deco

# %%
COUNTS = [500, 60, 7]

@loss('plain')
def ce(logits, target):
    return F.cross_entropy(logits, target)

@loss('logit_adjusted')
@adjusted_by(COUNTS, tau=0.8)
def ce_la(logits, target):
    return F.cross_entropy(logits, target)

# %%
clf = nn.Linear(4, len(COUNTS))
clf = clf.to(DEV)
x = torch.linspace(-1, 1, 24).view(6, 4).to(DEV)
y = torch.tensor([0, 0, 0, 1, 0, 2], device=DEV)

# %%
table = {}
for name, criterion in LOSSES.items():
    clf.zero_grad()
    value = criterion(clf(x), y)
    value.backward()
    table[name] = value.detach()
    print(f'{name:>15}: {value:.4f}')
