# id = "270"
# cause = "module_in_plain_container"
# also_causes = []
# culprit = "self.tables[col]"
# also_culprit = ["self.tables", "self.tables[col].weight", "self.tables['store']", "model.tables", "model.tables['store']"]
# culprit_cell = 3
# origin_cell = 3
# also_cells = [4, 5]
# origin = "self.tables = {c: nn.Embedding(n, self.width(n)) for c, n in cards.items()}"
# culprit_device = "HOST"
# other_device = "DEV"
# fail_cell = 5
# fix_site = "class __init__"
# visible = "only in an object attribute (an embedding in a dict)"
# expect_after_fix = "sales.device == torch.device(DEV) and sales.shape == (4,)"
# [[ref_fix]]
# op = "replace"
# cell = 3
# old = "self.tables = {c: nn.Embedding(n, self.width(n)) for c, n in cards.items()}"
# new = "self.tables = nn.ModuleDict({c: nn.Embedding(n, self.width(n)) for c, n in cards.items()})"
# [rerun]
# cells = [3, 4, 5]

# %%
# store sales, tabular baseline (entity embeddings)
import torch
import torch.nn as nn
train = {"store": [0, 3, 1, 2], "promo": [0, 1, 1, 0], "weekday": [1, 5, 6, 2]}
cont = [[0.1, 2.0], [0.4, 1.0], [0.3, 0.0], [0.9, 0.5]]

# %%
def cardinalities(df):
    return {c: max(v) + 1 for c, v in df.items()}

def to_batch(df, cont, device):
    cats = {c: torch.tensor(v, device=device) for c, v in df.items()}
    return cats, torch.tensor(cont, device=device)

# %%
class EntityNet(nn.Module):
    @staticmethod
    def width(n):
        return min(8, (n + 1) // 2 + 1)

    def __init__(self, cards, n_cont, hidden=8):
        super().__init__()
        self.bn = nn.BatchNorm1d(n_cont)
        self.tables = {c: nn.Embedding(n, self.width(n)) for c, n in cards.items()}
        total = sum(t.embedding_dim for t in self.tables.values()) + n_cont
        self.mlp = nn.Sequential(nn.Linear(total, hidden), nn.ReLU(), nn.Linear(hidden, 1))

    def lookup(self, cats):
        return [self.tables[col](ids) for col, ids in cats.items()]

    def forward(self, cats, cont):
        parts = [self.bn(cont), *self.lookup(cats)]
        return self.mlp(torch.cat(parts, dim=1)).squeeze(1)

# %%
model = EntityNet(cardinalities(train), n_cont=2)
model = model.to(DEV)

# %%
cats, xs = to_batch(train, cont, DEV)
sales = model(cats, xs)
