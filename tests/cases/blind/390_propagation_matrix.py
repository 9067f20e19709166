# id = "390"
# cause = "plain_tensor_attribute"
# also_causes = []
# culprit = "self.graph"
# also_culprit = ["rec.graph", "self._graph", "rec._graph"]
# culprit_cell = 3
# origin_cell = 2
# also_cells = [4]
# origin = "self._graph = value.coalesce()"
# culprit_device = "HOST"
# other_device = "DEV"
# fail_cell = 5
# fix_site = "class of the notebook (base class)"
# visible = "only in an object attribute"
# expect_after_fix = "top.device == torch.device(DEV) and rec.users.weight.device == torch.device(DEV)"
# [[ref_fix]]
# op = "run"
# code = "rec.graph = rec.graph.to(DEV)"
# [rerun]
# cells = [5]

# %%
import torch
from torch import nn

def bipartite(pairs, n_u, n_i):
    u, i = torch.tensor(pairs).T
    rows, cols = torch.cat([u, i + n_u]), torch.cat([i + n_u, u])
    deg = torch.bincount(rows, minlength=n_u + n_i).clamp(min=1).float()
    vals = (deg[rows] * deg[cols]).rsqrt()
    return torch.sparse_coo_tensor(torch.stack([rows, cols]), vals, (n_u + n_i, n_u + n_i))

# %%
class GraphModel(nn.Module):
    """anything that propagates over a fixed graph"""
    def __init__(self):
        super().__init__()
        self._graph = None

    @property
    def graph(self):
        if self._graph is None:
            raise ValueError("set .graph first")
        return self._graph

    @graph.setter
    def graph(self, value):
        self._graph = value.coalesce()

# %%
class LightRec(GraphModel):
    def __init__(self, n_u, n_i, d=6, hops=2):
        super().__init__()
        self.users, self.items, self.hops = nn.Embedding(n_u, d), nn.Embedding(n_i, d), hops

    def embeddings(self):
        layers = [torch.cat([self.users.weight, self.items.weight])]
        for _ in range(self.hops):
            layers.append(torch.sparse.mm(self.graph, layers[-1]))
        return sum(layers) / len(layers)

    def recommend(self, u, k):
        e = self.embeddings()
        items = e[self.users.num_embeddings:]
        return (e[u] @ items.T).topk(k).values

# %%
pairs = [(0, 1), (0, 2), (1, 2), (2, 0), (3, 4), (2, 4)]
rec = LightRec(4, 5)
rec.graph = bipartite(pairs, 4, 5)
rec = rec.to(DEV).eval()

# %%
with torch.inference_mode():
    top = rec.recommend(torch.tensor([0, 3], device=DEV), k=2)
