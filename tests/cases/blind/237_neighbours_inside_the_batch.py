# id = "237"
# cause = "nested_batch_partly_moved"
# also_causes = ["input_not_moved", "index_device"]
# culprit = "hop.weight"
# also_culprit = ["hop", "blk.hops", "blk.hops[0]", "blk.hops[0].weight", "blocks.hops", "mb.hops", "mb.hops[0].weight", "self.hops", "mb"]
# culprit_cell = 3
# origin_cell = 1
# also_cells = [1, 4]
# origin = "if torch.is_tensor(v):"
# culprit_device = "HOST"
# other_device = "DEV"
# fail_cell = 4
# fix_site = "class of the notebook"
# visible = "only in an object attribute"
# expect_after_fix = "logits.device == torch.device(DEV) and all(h.weight.device == torch.device(DEV) for h in mb.hops)"
# [[ref_fix]]
# op = "replace"
# cell = 1
# old = "        return self"
# new = "            elif isinstance(v, list):\n                for item in v:\n                    item.to(device)\n        return self"
# [rerun]
# cells = [1, 2, 3, 4]

# %%
import torch
from torch import nn
from dataclasses import dataclass, fields

class Movable:
    def to(self, device):
        for f in fields(self):
            v = getattr(self, f.name)
            if torch.is_tensor(v):
                setattr(self, f.name, v.to(device))
        return self

@dataclass
class Hop(Movable):
    src: torch.Tensor
    weight: torch.Tensor

@dataclass
class MiniBatch(Movable):
    x: torch.Tensor
    seeds: torch.Tensor
    hops: list

# %%
def sample(x, seeds, fanouts):
    n = len(x)
    hops = []
    for k in fanouts:
        src = (torch.arange(n)[:, None] * 3 + torch.arange(k)) % n
        hops.append(Hop(src, torch.full((n, k), 1. / k)))
    return MiniBatch(x, seeds, hops)

# %%
class Sage(nn.Module):
    def __init__(self, dims):
        super().__init__()
        self.lins = nn.ModuleList(nn.Linear(2 * a, b) for a, b in zip(dims, dims[1:]))

    def aggregate(self, h, hop):
        return (h[hop.src] * hop.weight.unsqueeze(-1)).sum(1)

    def forward(self, blk):
        h = blk.x
        for lin, hop in zip(self.lins, blk.hops):
            h = torch.relu(lin(torch.cat([h, self.aggregate(h, hop)], -1)))
        return h[blk.seeds]

sage = Sage([4, 6, 3]).to(DEV)

# %%
feats = torch.linspace(0, 1, 28).view(7, 4)
mb = sample(feats, torch.tensor([0, 5]), fanouts=(2, 3)).to(DEV)
with torch.no_grad():
    logits = sage(mb)
