# id = "130"
# cause = "nested_batch_partly_moved"
# also_causes = ["input_not_moved", "index_device"]
# culprit = "g.batch"
# also_culprit = ["batch", "self.batch", "batch[:, None].expand_as(x)", "g"]
# culprit_cell = 2
# origin_cell = 1
# also_cells = [3, 4]
# origin = "def to(self, device):"
# culprit_device = "HOST"
# other_device = "DEV"
# fail_cell = 4
# fix_site = "class of the notebook"
# visible = "first user frame"
# expect_after_fix = "pred.device == torch.device(DEV)"
# [[ref_fix]]
# op = "replace"
# cell = 1
# old = "        return self"
# new = "        self.batch = self.batch.to(device)\n        return self"
# [rerun]
# cells = [1, 3, 4]

# %%
import torch
from torch import nn
from dataclasses import dataclass

@dataclass
class GraphBatch:
    x: torch.Tensor
    edge_index: torch.Tensor
    batch: torch.Tensor

    def to(self, device):
        self.x = self.x.to(device)
        self.edge_index = self.edge_index.to(device)
        return self

# %%
def global_mean_pool(x, batch):
    n = int(batch.max()) + 1
    total = x.new_zeros(n, x.size(1)).scatter_add_(0, batch[:, None].expand_as(x), x)
    return total / torch.bincount(batch, minlength=n).clamp(min=1)[:, None]

class GNN(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.lin = nn.Linear(4, 8), nn.Linear(8, 2)
    def forward(self, g):
        src, dst = g.edge_index
        h = self.conv(g.x)
        h = h + torch.zeros_like(h).index_add(0, dst, h[src])
        return self.lin(global_mean_pool(h.relu(), g.batch))

# %%
gnn = GNN().to(DEV)
g = GraphBatch(torch.randn(5, 4), torch.tensor([[0, 1, 3], [1, 2, 4]]), torch.tensor([0, 0, 0, 1, 1]))

# %%
g = g.to(DEV)
pred = gnn(g)
