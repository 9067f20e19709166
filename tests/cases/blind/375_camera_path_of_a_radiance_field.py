# id = "375"
# cause = "input_not_moved"
# also_causes = ["fresh_tensor_no_device"]
# culprit = "c2w"
# also_culprit = ["pose", "pts", "x", "rays_o", "rays_d", "self.orbit(n)", "path", "scene.orbit(2)", "o", "d", "encode(x)", "torch.stack([look_from(a) for a in angles])"]
# culprit_cell = 4
# origin_cell = 1
# also_cells = [2, 3, 5]
# origin = "return torch.stack([look_from(a) for a in angles])"
# culprit_device = "HOST"
# other_device = "DEV"
# fail_cell = 5
# fix_site = "earlier cell"
# visible = "raising frame"
# expect_after_fix = "len(film) == 2 and all(f.shape == (4, 4, 3) for f in film) and all(f.device == torch.device(HOST) for f in film)"
# [[ref_fix]]
# op = "replace"
# cell = 4
# old = "for c2w in path:"
# new = "for c2w in path.to(next(field.parameters()).device):"
# [rerun]
# cells = [4, 5]

# %%
import math
import torch
from torch import nn

def look_from(a, radius=2.0):
    c, s = math.cos(a), math.sin(a)
    return torch.tensor([[c, 0., s, radius * s], [0., 1., 0., 0.], [-s, 0., c, radius * c]])

class Scene:
    def __init__(self, n_views, device):
        self.device = device
        self.poses = self.orbit(n_views)
        self.images = torch.rand(n_views, 4, 4, 3)

    def orbit(self, n):
        angles = [2 * math.pi * i / n for i in range(n)]
        return torch.stack([look_from(a) for a in angles])

    def view(self, i):
        return self.poses[i].to(self.device), self.images[i].to(self.device)

# %%
def rays(c2w, hw=4, focal=3.0):
    y, x = torch.meshgrid(torch.arange(hw, device=c2w.device), torch.arange(hw, device=c2w.device), indexing="ij")
    d = torch.stack([(x - hw / 2) / focal, -(y - hw / 2) / focal, -torch.ones_like(x)], -1) @ c2w[:, :3].T
    return c2w[:, 3].expand_as(d), d

def encode(x, octaves=2):
    return torch.cat([x] + [fn(2 ** k * x) for k in range(octaves) for fn in (torch.sin, torch.cos)], -1)

# %%
class Field(nn.Module):
    def __init__(self, samples=6):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(15, 24), nn.ReLU(), nn.Linear(24, 4))
        self.register_buffer("depths", torch.linspace(1.0, 3.0, samples))

    def query(self, x):
        rgb, sigma = self.net(encode(x)).split((3, 1), -1)
        return rgb.sigmoid(), sigma.relu()

    def render(self, c2w):
        rays_o, rays_d = rays(c2w)
        steps = self.depths.to(rays_o.device).view(-1, 1)
        pts = rays_o.unsqueeze(-2) + rays_d.unsqueeze(-2) * steps
        rgb, sigma = self.query(pts)
        alpha = 1 - torch.exp(-0.4 * sigma)
        trans = torch.cumprod(torch.cat([torch.ones_like(alpha[..., :1, :]), 1 - alpha], -2), -2)[..., :-1, :]
        return (rgb * alpha * trans).sum(-2)

# %%
scene = Scene(5, DEV)
field = Field().to(scene.device)
opt = torch.optim.SGD(field.parameters(), lr=0.1)
for i in range(3):
    pose, img = scene.view(i)
    loss = (field.render(pose) - img).square().mean()
    opt.zero_grad(); loss.backward(); opt.step()

def frames(field, path):
    for c2w in path:
        with torch.no_grad():
            yield field.render(c2w)

# %%
film = [f.cpu() for f in frames(field, scene.orbit(2))]
