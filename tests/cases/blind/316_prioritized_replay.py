# id = "316"
# cause = "index_device"
# also_causes = []
# culprit = "idx"
# also_culprit = ["torch.multinomial(self.prio[:self.size], n, replacement=True)"]
# culprit_cell = 2
# origin_cell = 2
# also_cells = []
# origin = "idx = torch.multinomial(self.prio[:self.size], n, replacement=True)"
# culprit_device = "DEV"
# other_device = "HOST"
# fail_cell = 5
# fix_site = "class of the notebook"
# visible = "raising frame"
# expect_after_fix = "td.device == torch.device(DEV) and buf.frames.device == torch.device(HOST)"
# [[ref_fix]]
# op = "replace"
# cell = 2
# old = "fields = (f[idx]"
# new = "fields = (f[idx.cpu()]"
# [rerun]
# cells = [2, 4, 5]

# %%
import torch
from torch import nn
import copy

# %%
class PrioritizedReplay:
    """frames stay in host memory (a million of them do not fit on the card), priorities live where the TD errors come from"""
    def __init__(self, capacity, obs_dim, device, alpha=0.6):
        self.device, self.alpha = device, alpha
        self.frames = torch.zeros(capacity, obs_dim)
        self.next_frames = torch.zeros(capacity, obs_dim)
        self.actions = torch.zeros(capacity, dtype=torch.long)
        self.rewards = torch.zeros(capacity)
        self.prio = torch.zeros(capacity, device=device)
        self.size = 0

    def add(self, s, a, r, s2):
        i = self.size
        self.frames[i], self.next_frames[i] = s, s2
        self.actions[i], self.rewards[i] = a, r
        self.prio[i] = 1.0
        self.size += 1

    def sample(self, n):
        idx = torch.multinomial(self.prio[:self.size], n, replacement=True)
        fields = (f[idx] for f in (self.frames, self.actions, self.rewards, self.next_frames))
        return idx, *(f.to(self.device) for f in fields)

    def update(self, idx, td):
        self.prio[idx] = td.abs().pow(self.alpha) + 1e-5

# %%
def td_error(q, q_target, batch, gamma=0.99):
    s, a, r, s2 = batch
    with torch.no_grad():
        goal = r + gamma * q_target(s2).amax(1)
    return q(s).gather(1, a[:, None]).squeeze(1) - goal

# %%
q = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 2)).to(DEV)
q_target = copy.deepcopy(q)
buf = PrioritizedReplay(32, 4, DEV)
for _ in range(20):
    buf.add(torch.rand(4), int(torch.rand(1) > 0.5), float(torch.rand(1)), torch.rand(4))

# %%
idx, *batch = buf.sample(8)
td = td_error(q, q_target, batch).detach()
buf.update(idx, td)
