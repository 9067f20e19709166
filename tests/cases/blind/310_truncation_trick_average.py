# id = "310"
# cause = "checkpoint_location"
# also_causes = []
# culprit = "G.extra['w_avg']"
# also_culprit = ["self.extra['w_avg']", "self.extra", "G.extra", "avg", "snapshot['w_avg']", "snapshot"]
# culprit_cell = 3
# origin_cell = 4
# also_cells = [5]
# origin = "snapshot = torch.load(network_pkl, map_location='cpu')"
# culprit_device = "HOST"
# other_device = "DEV"
# fail_cell = 5
# fix_site = "checkpoint load"
# visible = "raising frame"
# expect_after_fix = "imgs.device == torch.device(DEV)"
# [[ref_fix]]
# op = "run"
# code = "G.extra['w_avg'] = G.extra['w_avg'].to(DEV)"

# %%
import os, tempfile
import torch
from torch import nn

def mapping(z_dim, w_dim):
    return nn.Sequential(nn.Linear(z_dim, w_dim), nn.LeakyReLU(0.2), nn.Linear(w_dim, w_dim))

# %%
# -- what train.py left on the disk
network_pkl = os.path.join(tempfile.mkdtemp(), 'network-snapshot.pt')
_map, _syn = mapping(4, 6), nn.Linear(6, 3 * 4 * 4)
torch.save({'mapping': _map.state_dict(), 'synthesis': _syn.state_dict(), 'w_avg': torch.randn(6), 'cur_nimg': 1000}, network_pkl)

# %%
class Generator(nn.Module):
    def __init__(self, z_dim=4, w_dim=6):
        super().__init__()
        self.mapping = mapping(z_dim, w_dim)
        self.synthesis = nn.Linear(w_dim, 3 * 4 * 4)
        self.extra = {}

    def load(self, snap):
        for name, value in snap.items():
            if isinstance(value, dict):
                getattr(self, name).load_state_dict(value)
            else:
                self.extra[name] = value
        return self

    def forward(self, z, truncation_psi=1.0):
        w = self.mapping(z)
        if truncation_psi != 1:
            avg = self.extra['w_avg']
            w = avg + truncation_psi * (w - avg)
        return torch.tanh(self.synthesis(w)).view(-1, 3, 4, 4)

# %%
snapshot = torch.load(network_pkl, map_location='cpu')
G = Generator().to(DEV).eval().load(snapshot)
print('trained for', G.extra['cur_nimg'], 'images')
with torch.no_grad():
    raw = G(torch.randn(2, 4, device=DEV))        # works

# %%
with torch.no_grad():
    imgs = G(torch.randn(2, 4, device=DEV), truncation_psi=0.7)
