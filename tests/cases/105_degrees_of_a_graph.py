# id = "105"
# cause = "fresh_tensor_no_device"
# also_causes = []
# culprit = "out"
# also_culprit = ["torch.zeros(num_nodes)"]
# culprit_cell = 2
# origin_cell = 2
# also_cells = []
# origin = "out = torch.zeros(num_nodes)"
# culprit_device = "HOST"
# other_device = "DEV"
# fail_cell = 4
# fix_site = "a function in an earlier cell"
# visible = "raising frame"
# expect_after_fix = "out.device == torch.device(DEV)"
# [[ref_fix]]
# op = "replace"
# cell = 2
# old = "torch.zeros(num_nodes)"
# new = "torch.zeros(num_nodes, device=index.device)"
# [rerun]
# cells = [2, 3, 4]

# %%
import torch
from torch import nn

edge_index = torch.tensor([[0, 1, 2, 3, 0], [1, 2, 3, 0, 2]])
x = torch.randn(4, 5)

# %%
def degree(index, num_nodes):
    out = torch.zeros(num_nodes)
    return out.scatter_add_(0, index, torch.ones_like(index, dtype=out.dtype))

class GCNConv(nn.Module):
    def __init__(self, c_in, c_out):
        super().__init__()
        self.lin = nn.Linear(c_in, c_out, bias=False)

    def forward(self, x, edge_index):
        row, col = edge_index
        norm = degree(col, x.size(0)).clamp(min=1).rsqrt()
        h = self.lin(x) * norm[:, None]
        return torch.zeros_like(h).index_add_(0, col, h[row])

# %%
conv = GCNConv(5, 3).to(DEV)
data = {"x": x.to(DEV), "edge_index": edge_index.to(DEV)}

# %%
out = conv(**data)
