"""A graph attention network in plain torch, over two cards: node features on one, the head on the other."""

# %%
import torch
import torch.nn.functional as F
from torch import nn

device, head_device = torch.device(DEV), torch.device(DEV2)
n_nodes, n_classes, n_features = 40, 3, 6

# %%
# three communities; neighbours mostly inside
y = torch.arange(n_nodes) % n_classes
source = torch.randint(0, n_nodes, (220,))
target = torch.randint(0, n_nodes, (220,))
keep = (y[source] == y[target]) | (torch.rand(220) < 0.15)
edge_index = torch.stack([source[keep], target[keep]])
loops = torch.arange(n_nodes).expand(2, -1)
edge_index = torch.cat([edge_index, loops], dim=1)
x = F.one_hot(y, n_features).float() * 0.5 + torch.randn(n_nodes, n_features)
train_mask = torch.rand(n_nodes) < 0.5


# %%
class GATLayer(nn.Module):
    def __init__(self, n_in, n_out):
        super().__init__()
        self.lin = nn.Linear(n_in, n_out, bias=False)
        self.att = nn.Parameter(torch.empty(2 * n_out))
        self.bias = nn.Parameter(torch.zeros(n_out))
        nn.init.normal_(self.att, std=0.3)

    def forward(self, x, edge_index):
        h = self.lin(x)
        src, dst = edge_index
        score = F.leaky_relu(torch.cat([h[src], h[dst]], dim=-1) @ self.att, 0.2)
        top = torch.full((x.size(0),), float("-inf"), device=x.device).scatter_reduce(0, dst, score, "amax")
        weight = (score - top[dst]).exp()
        total = torch.zeros(x.size(0), device=x.device).index_add(0, dst, weight)
        alpha = weight / total[dst]
        out = torch.zeros_like(h).index_add(0, dst, alpha.unsqueeze(-1) * h[src])
        return out + self.bias


class Body(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([GATLayer(n_features, 16), GATLayer(16, 16)])
        self.norms = nn.ModuleList([nn.LayerNorm(16), nn.LayerNorm(16)])

    def forward(self, x, edge_index):
        for layer, norm in zip(self.layers, self.norms):
            x = F.dropout(F.elu(norm(layer(x, edge_index))), 0.2, self.training)
        return x


body = Body().to(device)
head = nn.Linear(16, n_classes).to(head_device)
optimizer = torch.optim.Adam([*body.parameters(), *head.parameters()], lr=0.02, weight_decay=5e-4)
x, edge_index = x.to(device), edge_index.to(device)
labels = y.to(head_device)
train_index = train_mask.nonzero().squeeze(1).to(head_device)
losses = []

# %%
for epoch in range(12):
    body.train()
    optimizer.zero_grad()
    logits = head(body(x, edge_index).to(head_device))
    loss = F.cross_entropy(logits[train_index], labels[train_index])
    loss.backward()
    nn.utils.clip_grad_norm_([*body.parameters(), *head.parameters()], 2.0)
    optimizer.step()
    losses.append(loss.item())

# %%
body.eval()
with torch.no_grad():
    predicted = head(body(x, edge_index).to(head_device)).argmax(-1)
test_index = torch.ones(n_nodes, dtype=torch.bool, device=head_device).index_fill(0, train_index, False)
accuracy = (predicted == labels)[test_index].float().mean()
print("accuracy on nodes not trained on:", accuracy.item())
losses.append(accuracy.item())

# %%
# a sparse adjacency does the same sum
size = (n_nodes, n_nodes)
values = torch.ones(edge_index.size(1), device=device)
adjacency = torch.sparse_coo_tensor(edge_index.flip(0), values, size, check_invariants=True)
degree = torch.sparse.mm(adjacency, torch.ones(n_nodes, 1, device=device)).squeeze(1)
counted = torch.bincount(edge_index[1], minlength=n_nodes)
assert torch.equal(degree.long(), counted)
losses.append(float(degree.std()))
