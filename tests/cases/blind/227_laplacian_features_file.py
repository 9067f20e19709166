# id = "227"
# cause = "library_returns_cpu"
# also_causes = ["input_not_moved"]
# culprit = "pe"
# also_culprit = ["spectral_positions(adj, self.k)", "pe * sign", "self.flip(spectral_positions(adj, self.k))"]
# culprit_cell = 2
# origin_cell = 2
# also_cells = [1]
# origin = "pe = self.flip(spectral_positions(adj, self.k))"
# culprit_device = "HOST"
# other_device = "DEV"
# fail_cell = 4
# fix_site = "library; work-around in forward"
# visible = "first user frame"
# expect_after_fix = "node_out.device == torch.device(DEV) and node_out.shape == (5, 4)"
# # the module of the file computes with numpy on purpose; its result has to be moved by the caller (or at its end)
# [[ref_fix]]
# op = "replace"
# cell = 2
# old = "self.flip(spectral_positions(adj, self.k))"
# new = "self.flip(spectral_positions(adj, self.k)).to(x.device)"
# [rerun]
# cells = [2, 3, 4]

# %%
%%writefile lapfeat_ex227.py
"""Laplacian features of small graphs. Everything in float64 with LAPACK."""
import numpy as np
import torch


def normalized_laplacian(a):
    deg = a.sum(1)
    inv = 1.0 / np.sqrt(np.maximum(deg, 1e-12))
    return np.eye(len(a)) - inv[:, None] * a * inv[None, :]


def spectral_positions(adj, k):
    """adj: (n, n) tensor on any device -> (n, k) eigenvectors, trivial one dropped"""
    lap = normalized_laplacian(adj.detach().cpu().double().numpy())
    _, vec = np.linalg.eigh(lap)
    vec = np.abs(vec[:, 1:k + 1])
    return torch.from_numpy(np.ascontiguousarray(vec)).float()

# %%
import os, sys
sys.path.insert(0, os.getcwd())
import torch
from torch import nn
from lapfeat_ex227 import spectral_positions

class GraphNet(nn.Module):
    def __init__(self, d_in, k, d_out):
        super().__init__()
        self.k = k
        self.node = nn.Linear(d_in, 6)
        self.pos = nn.Linear(k, 6, bias=False)
        self.out = nn.Linear(6, d_out)

    def flip(self, pe):
        sign = -1.0 if self.training else 1.0
        return pe * sign

    def forward(self, x, adj):
        pe = self.flip(spectral_positions(adj, self.k))
        h = torch.relu(self.node(x) + self.pos(pe))
        return self.out(adj @ h)

# %%
def ring(n):
    a = torch.eye(n).roll(1, 0)
    a[0, 2] = a[2, 0] = 1.
    return a + a.t()

gnn = GraphNet(3, 2, 4).to(DEV).eval()
graph = {'x': torch.ones(5, 3).to(DEV), 'adj': ring(5).to(DEV)}

# %%
with torch.no_grad():
    node_out = gnn(**graph)
