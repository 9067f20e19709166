# id = "303"
# cause = "label_not_moved"
# also_causes = ["nested_batch_partly_moved", "input_not_moved"]
# culprit = "ep.query_y"
# also_culprit = ["ep", "episode", "episode.query_y"]
# culprit_cell = 3
# origin_cell = 2
# also_cells = [4]
# origin = "return replace(self, support_x=self.support_x.to(device), query_x=self.query_x.to(device))"
# culprit_device = "HOST"
# other_device = "DEV"
# fail_cell = 4
# fix_site = "class of the notebook"
# visible = "only in an object attribute"
# expect_after_fix = "loss.device == torch.device(DEV) and 0 <= acc <= 1"
# [[ref_fix]]
# op = "replace"
# cell = 2
# old = "query_x=self.query_x.to(device))"
# new = "query_x=self.query_x.to(device), support_y=self.support_y.to(device), query_y=self.query_y.to(device))"
# [rerun]
# cells = [2, 3, 4]

# %%
import torch
import torch.nn.functional as F
from torch import nn
from dataclasses import dataclass, replace

# %%
@dataclass
class Episode:
    support_x: torch.Tensor
    support_y: torch.Tensor
    query_x: torch.Tensor
    query_y: torch.Tensor

    def to(self, device):
        return replace(self, support_x=self.support_x.to(device), query_x=self.query_x.to(device))

def sample_episode(pool, n_way=3, k_shot=2, n_query=2):
    classes = torch.randperm(len(pool))[:n_way]
    sx, sy, qx, qy = [], [], [], []
    for new_label, c in enumerate(classes.tolist()):
        imgs = pool[c][torch.randperm(pool.shape[1])]
        sx.append(imgs[:k_shot]); sy += [new_label] * k_shot
        qx.append(imgs[k_shot:k_shot + n_query]); qy += [new_label] * n_query
    return Episode(torch.cat(sx), torch.tensor(sy), torch.cat(qx), torch.tensor(qy))

# %%
class ProtoNet(nn.Module):
    def __init__(self, d_in=10, d=6):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(d_in, 16), nn.ReLU(), nn.Linear(16, d))

    def prototypes(self, ep):
        z = self.encoder(ep.support_x)
        return torch.stack([z[ep.support_y == c].mean(0) for c in ep.support_y.unique()])

    def forward(self, ep):
        logits = -torch.cdist(self.encoder(ep.query_x), self.prototypes(ep)) ** 2
        loss = F.cross_entropy(logits, ep.query_y)
        acc = (logits.argmax(1) == ep.query_y).float().mean().item()
        return loss, acc

# %%
pool = torch.randn(7, 5, 10)          # 7 characters, 5 drawings of each
proto = ProtoNet().to(DEV)
episode = sample_episode(pool).to(DEV)
loss, acc = proto(episode)
print(f"loss {loss:.3f} acc {acc:.2f}")
