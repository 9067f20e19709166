# id = "355"
# cause = "index_device"
# also_causes = []
# culprit = "chosen"
# also_culprit = ["STRATEGIES[name](clf, pool, k)", "torch.cat(scores).topk(k).indices"]
# culprit_cell = 4
# origin_cell = 3
# also_cells = []
# origin = "return torch.cat(scores).topk(k).indices"
# culprit_device = "DEV"
# other_device = "HOST"
# fail_cell = 5
# fix_site = "a function in an earlier cell"
# visible = "raising frame"
# expect_after_fix = "len(pool) == 36 and labelled.shape == (8, 5) and int(pool.unlabelled.sum()) == 36"
# # the pool stays on the host on purpose (it stands for a memory map)
# [[ref_fix]]
# op = "replace"
# cell = 4
# old = "chosen = STRATEGIES[name](clf, pool, k)"
# new = "chosen = STRATEGIES[name](clf, pool, k).cpu()"
# [rerun]
# cells = [4, 5]

# %%
import torch
from torch import nn

# %%
class Pool:
    """unlabelled samples; too many for the card, so they live on the host"""
    def __init__(self, x):
        self.x = x
        self.unlabelled = torch.ones(len(x), dtype=torch.bool)

    def __len__(self):
        return int(self.unlabelled.sum())

    def candidates(self):
        return self.unlabelled.nonzero().squeeze(1)

    def chunks(self, size=16):
        yield from self.x[self.unlabelled].split(size)

# %%
STRATEGIES = {}
def strategy(fn):
    STRATEGIES[fn.__name__] = fn
    return fn

@strategy
@torch.no_grad()
def entropy(clf, pool, k):
    scores = []
    for chunk in pool.chunks():
        p = clf(chunk.to(DEV)).softmax(-1)
        scores.append(-(p * p.log()).sum(-1))
    return torch.cat(scores).topk(k).indices

@strategy
def random(clf, pool, k):
    return torch.randperm(len(pool))[:k]

# %%
def query(clf, pool, k, name='entropy'):
    chosen = STRATEGIES[name](clf, pool, k)
    ids = pool.candidates()[chosen]
    pool.unlabelled[ids] = False
    return pool.x[ids]

# %%
pool = Pool(torch.rand(44, 5))
clf = nn.Sequential(nn.Linear(5, 12), nn.ReLU(), nn.Linear(12, 3)).to(DEV)
labelled = query(clf, pool, 4, name='random')        # cold start
more = query(clf, pool, 4)
labelled = torch.cat([labelled, more])
