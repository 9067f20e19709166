# id = "315"
# cause = "module_in_plain_container"
# also_causes = []
# culprit = "conv"
# also_culprit = ["self.blocks", "self.blocks[0]", "self.blocks[0][0]", "gnn.blocks", "gnn.blocks[0][0]", "self.lin", "norm"]
# culprit_cell = 3
# origin_cell = 3
# also_cells = [2]
# origin = "self.blocks = [(GCNConv(a, b), nn.LayerNorm(b)) for a, b in zip(dims, dims[1:])]"
# culprit_device = "HOST"
# other_device = "DEV"
# fail_cell = 5
# fix_site = "class __init__"
# visible = "only in an object attribute"
# expect_after_fix = "logits.device == torch.device(DEV) and logits.shape == (6, 3)"
# [[ref_fix]]
# op = "replace"
# cell = 3
# old = "[(GCNConv(a, b), nn.LayerNorm(b)) for a, b in zip(dims, dims[1:])]"
# new = "nn.ModuleList(nn.ModuleList([GCNConv(a, b), nn.LayerNorm(b)]) for a, b in zip(dims, dims[1:]))"
# [rerun]
# cells = [3, 4, 5]

# %%
import torch
import torch.nn as nn
import torch.nn.functional as F

edge_index = torch.tensor([[0, 1, 1, 2, 3, 4, 4, 5], [1, 0, 2, 1, 4, 3, 5, 4]])
feats = torch.rand(6, 4)

# %%
class GCNConv(nn.Module):
    def __init__(self, d_in, d_out):
        super().__init__()
        self.lin = nn.Linear(d_in, d_out, bias=False)

    def forward(self, x, edge_index):
        src, dst = edge_index
        x = self.lin(x)
        deg = x.new_ones(x.size(0)).index_add(0, dst, x.new_ones(dst.numel()))
        norm = (deg[src] * deg[dst]).rsqrt().unsqueeze(1)
        return torch.zeros_like(x).index_add(0, dst, x[src] * norm) + x / deg.unsqueeze(1)

# %%
class GNN(nn.Module):
    def __init__(self, dims, n_classes, dropout=0.5):
        super().__init__()
        self.blocks = [(GCNConv(a, b), nn.LayerNorm(b)) for a, b in zip(dims, dims[1:])]
        self.readout = nn.Linear(dims[-1], n_classes)
        self.dropout = dropout

    def encode(self, x, edge_index):
        for conv, norm in self.blocks:
            x = F.relu(norm(conv(x, edge_index)))
            x = F.dropout(x, self.dropout, self.training)
        return x

    def forward(self, x, edge_index):
        return self.readout(self.encode(x, edge_index))

# %%
gnn = GNN([4, 8, 8], 3).to(DEV)
print(sum(p.numel() for p in gnn.parameters()), "parameters")     # 27?

# %%
gnn.eval()
logits = gnn(feats.to(DEV), edge_index.to(DEV))
