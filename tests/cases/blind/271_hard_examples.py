# id = "271"
# cause = "index_device"
# also_causes = []
# culprit = "pick"
# also_culprit = ["miner.hardest"]
# culprit_cell = 3
# origin_cell = 2
# also_cells = [2, 5]
# origin = "self.hardest = per_item.topk(self.k).indices"
# culprit_device = "DEV"
# other_device = "HOST"
# fail_cell = 5
# fix_site = "class of the notebook"
# visible = "raising frame"
# expect_after_fix = "xb.device == torch.device(DEV) and corpus.rows.device == torch.device(HOST) and xb.shape == (3, 4)"
# [[ref_fix]]
# op = "replace"
# cell = 2
# old = "per_item.topk(self.k).indices"
# new = "per_item.topk(self.k).indices.cpu()"
# [rerun]
# cells = [2, 4, 5]

# %%
import torch
from torch import nn
from torch.nn import functional as F

# %%
class HardMiner:
    def __init__(self, k):
        self.k = k
        self.hardest = None

    @torch.no_grad()
    def scan(self, net, corpus, device):
        losses = []
        for rows, y in corpus.blocks(4):
            losses.append(F.cross_entropy(net(rows.to(device)), y.to(device), reduction="none"))
        per_item = torch.cat(losses)
        self.hardest = per_item.topk(self.k).indices
        return per_item.mean()

# %%
class Corpus:
    """40 GB in the real run, so it never leaves the host"""
    def __init__(self, n, d, classes):
        g = torch.Generator().manual_seed(5)
        self.rows = torch.randn(n, d, generator=g)
        self.y = torch.randint(classes, (n,), generator=g)

    def blocks(self, size):
        return zip(self.rows.split(size), self.y.split(size))

    def fetch(self, pick, device):
        return self.rows[pick].to(device), self.y[pick].to(device)

# %%
corpus = Corpus(10, 4, 3)
net = nn.Linear(4, 3).to(DEV)
miner = HardMiner(k=3)
print("mean loss", miner.scan(net, corpus, DEV).item())

# %%
xb, yb = corpus.fetch(miner.hardest, DEV)
F.cross_entropy(net(xb), yb).backward()
