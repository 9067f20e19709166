# id = "371"
# cause = "fresh_tensor_no_device"
# also_causes = []
# culprit = "nearest"
# also_culprit = ["open_distances(n_clouds, n_points)", "torch.full((b, n), 1e10)"]
# culprit_cell = 1
# origin_cell = 1
# also_cells = []
# origin = "return torch.full((b, n), 1e10)"
# culprit_device = "HOST"
# other_device = "DEV"
# fail_cell = 5
# fix_site = "a file of the user"
# visible = "raising frame"
# expect_after_fix = "logits.device == torch.device(DEV) and logits.shape == (2, 5)"
# [[ref_fix]]
# op = "replace"
# cell = 1
# old = "nearest = open_distances(n_clouds, n_points)"
# new = "nearest = open_distances(n_clouds, n_points).to(xyz)"
# [rerun]
# cells = [1, 2, 3, 4, 5]

# %%
%%writefile cloudops.py
import torch


def open_distances(b, n):
    # nothing picked yet, so everything is far away
    return torch.full((b, n), 1e10)


def take(points, idx):
    rows = torch.arange(points.shape[0], device=points.device)
    return points[rows.view(-1, *[1] * (idx.dim() - 1)).expand_as(idx), idx]


def farthest_points(xyz, k):
    """Greedy choice of k points per cloud, (B, N, 3) -> (B, k)."""
    n_clouds, n_points, _ = xyz.shape
    chosen = torch.zeros(n_clouds, k, dtype=torch.long, device=xyz.device)
    nearest = open_distances(n_clouds, n_points)
    last = chosen[:, 0]
    for i in range(k):
        chosen[:, i] = last
        gap = (xyz - take(xyz, last).unsqueeze(1)).square().sum(-1)
        nearest = torch.minimum(nearest, gap)
        last = nearest.argmax(-1)
    return chosen

# %%
import importlib, sys
import torch
from torch import nn
sys.path.insert(0, "")              # this folder
import cloudops
importlib.reload(cloudops)
from cloudops import farthest_points, take

args = {"device": DEV, "classes": 5, "centroids": (8, 4)}

# %%
class SetAbstraction(nn.Module):
    def __init__(self, n_out, width_in, width):
        super().__init__()
        self.n_out = n_out
        self.mlp = nn.Sequential(nn.Linear(3 + width_in, width), nn.ReLU(), nn.Linear(width, width))

    def forward(self, xyz, feats=None):
        keep = farthest_points(xyz, self.n_out)
        new_xyz = take(xyz, keep)
        pairs = torch.cdist(new_xyz, xyz).topk(4, largest=False).indices
        local = take(xyz, pairs) - new_xyz.unsqueeze(2)
        if feats is not None:
            local = torch.cat([local, take(feats, pairs)], -1)
        return new_xyz, self.mlp(local).amax(2)

class Classifier(nn.Module):
    def __init__(self, classes, centroids):
        super().__init__()
        self.sa1 = SetAbstraction(centroids[0], 0, 16)
        self.sa2 = SetAbstraction(centroids[1], 16, 16)
        self.head = nn.Linear(16, classes)

    def forward(self, cloud):
        xyz, f = self.sa1(cloud)
        _, f = self.sa2(xyz, f)
        return self.head(f.mean(1))

# %%
net = Classifier(args["classes"], args["centroids"]).to(args["device"])
clouds = torch.rand(2, 32, 3).to(args["device"])

# %%
logits = net(clouds)
