# id = "253"
# cause = "input_not_moved"
# also_causes = ["nested_batch_partly_moved"]
# culprit = "images"
# also_culprit = ["ep.query.x", "ep.query", "episode.query.x", "episode.query"]
# culprit_cell = 3
# origin_cell = 4
# also_cells = [2, 5]
# origin = "ep.support = ep.support.on(device)"
# culprit_device = "HOST"
# other_device = "DEV"
# fail_cell = 5
# fix_site = "an earlier cell"
# visible = "first user frame"
# expect_after_fix = "logits.device == torch.device(DEV) and logits.shape == (6, 2)"
# [[ref_fix]]
# op = "replace"
# cell = 4
# old = "    ep.support = ep.support.on(device)"
# new = "    ep.support, ep.query = ep.support.on(device), ep.query.on(device)"
# [rerun]
# cells = [4, 5]

# %%
from dataclasses import dataclass, replace
import functools, time
import torch
from torch import nn

# %%
@dataclass
class Shots:
    x: torch.Tensor
    y: torch.Tensor
    def on(self, device):
        return replace(self, x=self.x.to(device), y=self.y.to(device))

@dataclass
class Episode:
    support: Shots
    query: Shots
    ways: int = 2

def timed(fn):
    @functools.wraps(fn)
    def inner(*a, **k):
        t = time.perf_counter()
        try:
            return fn(*a, **k)
        finally:
            inner.seconds = time.perf_counter() - t
    return inner

# %%
class ProtoNet(nn.Module):
    def __init__(self, c=4):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(1, c, 3, padding=1), nn.ReLU(), nn.AdaptiveAvgPool2d(2), nn.Flatten())

    def embed(self, images):
        return self.body(images)

    def forward(self, ep):
        s = self.embed(ep.support.x)
        protos = torch.stack([s[ep.support.y == k].mean(0) for k in range(ep.ways)])
        q = self.embed(ep.query.x)
        return -torch.cdist(q, protos)

# %%
def sample_episode(device):
    """two-way, three-shot; in the paper the classes come from Omniglot"""
    ep = Episode(support=Shots(torch.rand(6, 1, 6, 6), torch.tensor([0, 0, 0, 1, 1, 1])),
                 query=Shots(torch.rand(6, 1, 6, 6), torch.tensor([0, 1] * 3)))
    ep.support = ep.support.on(device)
    return ep

@timed
def evaluate(net, episode):
    net.eval()
    with torch.no_grad():
        return net(episode)

# %%
net = ProtoNet().to(DEV)
episode = sample_episode(DEV)
logits = evaluate(net, episode)
print(f"{evaluate.seconds:.3f}s")
