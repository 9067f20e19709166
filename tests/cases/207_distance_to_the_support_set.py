# id = "207"
# cause = "stale_cache"
# also_causes = ["plain_tensor_attribute"]
# culprit = "protos"
# also_culprit = ["self.support", "proto.support", "self.support[0]", "proto.support[0]", "torch.stack(list(self.support.values()))", "proto"]
# culprit_cell = 1
# origin_cell = 2
# also_cells = [3, 4]
# origin = "proto.fit_support(xs, ys)"
# culprit_device = "HOST"
# other_device = "DEV"
# fail_cell = 4
# fix_site = "earlier cell"
# visible = "raising frame"
# expect_after_fix = "dist.device == torch.device(DEV)"
# [[ref_fix]]
# op = "run"
# code = "proto.support = {c: p.to(DEV) for c, p in proto.support.items()}"

# %%
import torch
from torch import nn

class ProtoNet(nn.Module):
    def __init__(self, d_in=5, d=3):
        super().__init__()
        self.encoder = nn.Linear(d_in, d)
        self.support = {}

    def fit_support(self, x, y):
        with torch.no_grad():
            z = self.encoder(x)
        for c in y.unique().tolist():
            self.support[c] = z[y == c].mean(0)

    def forward(self, q):
        protos = torch.stack(list(self.support.values()))
        return -torch.cdist(self.encoder(q), protos)

# %%
xs, ys = torch.randn(6, 5), torch.tensor([0, 0, 1, 1, 2, 2])
proto = ProtoNet()
proto.fit_support(xs, ys)

# %%
proto.to(DEV)
query = torch.randn(4, 5).to(DEV)

# %%
dist = proto(query)
