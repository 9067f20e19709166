# id = "259"
# cause = "model_not_moved"
# also_causes = []
# culprit = "self.lagged"
# also_culprit = ["agent.lagged", "agent.nets['lagged']"]
# culprit_cell = 2
# origin_cell = 2
# also_cells = [4, 5]
# origin = "self.online.to(device)"
# culprit_device = "HOST"
# other_device = "DEV"
# fail_cell = 5
# fix_site = "class of the notebook (its own to())"
# visible = "only in an object attribute"
# expect_after_fix = "td.device == torch.device(DEV) and all(p.device == torch.device(DEV) for p in agent.lagged.parameters())"
# [[ref_fix]]
# op = "replace"
# cell = 2
# old = "self.online.to(device)"
# new = "self.online.to(device); self.lagged.to(device)"
# [rerun]
# cells = [2, 4, 5]

# %%
import copy, random
from collections import deque
import torch
from torch import nn, optim

# %%
class Agent:
    gamma = 0.97

    def __init__(self, obs, actions, lr=5e-3):
        self.online = nn.Sequential(nn.Linear(obs, 16), nn.Tanh(), nn.Linear(16, actions))
        self.lagged = copy.deepcopy(self.online).requires_grad_(False)
        self.opt = optim.SGD(self.online.parameters(), lr=lr)
        self.device = torch.device("cpu")

    def to(self, device):
        self.online.to(device)
        self.device = torch.device(device)
        return self

    def act(self, s):
        with torch.no_grad():
            return int(self.online(s.to(self.device)).argmax())

    def bootstrap(self, r, s2, done):
        return r + self.gamma * (1 - done) * self.lagged(s2).amax(1)

    def learn(self, batch):
        s, a, r, s2, done = (x.to(self.device) for x in batch)
        goal = self.bootstrap(r, s2, done)
        q = self.online(s).gather(1, a[:, None]).squeeze(1)
        err = nn.functional.smooth_l1_loss(q, goal)
        self.opt.zero_grad(); err.backward(); self.opt.step()
        return (goal - q).detach()

# %%
def collate(transitions):
    s, a, r, s2, d = zip(*transitions)
    return torch.stack(s), torch.tensor(a), torch.tensor(r), torch.stack(s2), torch.tensor(d)

# %%
agent = Agent(4, 2).to(DEV)
memory = deque(maxlen=100)
state = torch.zeros(4)
for step in range(8):                       # toy environment: a random walk
    action = agent.act(state)
    nxt = state + 0.1 * torch.randn(4)
    memory.append((state, action, float(nxt.sum()), nxt, float(step == 7)))
    state = nxt

# %%
td = agent.learn(collate(list(memory)))
