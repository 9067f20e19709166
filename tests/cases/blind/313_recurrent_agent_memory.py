# id = "313"
# cause = "rnn_state"
# also_causes = ["fresh_tensor_no_device"]
# culprit = "self.memory"
# also_culprit = ["self.memory[0]", "self.memory[1]", "agent.memory", "agent.memory[0]"]
# culprit_cell = 2
# origin_cell = 2
# also_cells = [4]
# origin = "self.memory = (torch.zeros(1, self.hidden), torch.zeros(1, self.hidden))"
# culprit_device = "HOST"
# other_device = "DEV"
# fail_cell = 5
# fix_site = "class of the notebook"
# visible = "only in an object attribute"
# expect_after_fix = "q_values.device == torch.device(DEV) and len(q_values) == 4"
# [[ref_fix]]
# op = "replace"
# cell = 2
# old = "self.memory = (torch.zeros(1, self.hidden), torch.zeros(1, self.hidden))"
# new = "self.memory = tuple(torch.zeros(1, self.hidden, device=self.device) for _ in range(2))"
# [rerun]
# cells = [2, 4, 5]

# %%
import random
import numpy as np
import torch
from torch import nn

class Corridor:
    """reach the right end; the agent sees noise and a hint in the first step only"""
    n_actions = 2
    def reset(self):
        self.rng = np.random.default_rng(3)
        self.pos, self.t = 2, 0
        return self._obs()
    def _obs(self):
        return np.array([self.pos / 5, float(self.t == 0), self.rng.random()], dtype=np.float32)
    def step(self, a):
        self.pos += 1 if a else -1
        self.t += 1
        return self._obs(), float(self.pos >= 5), self.t >= 4

# %%
class DRQN(nn.Module):
    def __init__(self, n_obs, hidden, n_actions):
        super().__init__()
        self.fc = nn.Linear(n_obs, hidden)
        self.cell = nn.LSTMCell(hidden, hidden)
        self.q = nn.Linear(hidden, n_actions)
    def forward(self, obs, memory):
        h, c = self.cell(torch.relu(self.fc(obs)), memory)
        return self.q(h), (h, c)

class Agent:
    def __init__(self, env, hidden=8, eps=0.2, device=None):
        self.hidden, self.eps, self.device = hidden, eps, device
        self.n_actions = env.n_actions
        self.net = DRQN(3, hidden, env.n_actions).to(device)
        self.rng = random.Random(0)

    def begin_episode(self):
        self.memory = (torch.zeros(1, self.hidden), torch.zeros(1, self.hidden))

    @torch.no_grad()
    def act(self, obs):
        obs = torch.as_tensor(obs, device=self.device).unsqueeze(0)
        q, self.memory = self.net(obs, self.memory)
        a = self.rng.randrange(self.n_actions) if self.rng.random() < self.eps else q.argmax().item()
        return a, q.squeeze(0)

# %%
def rollout(env, agent):
    obs, done, trace = env.reset(), False, []
    agent.begin_episode()
    while not done:
        a, q = agent.act(obs)
        obs, r, done = env.step(a)
        trace.append(q)
    return torch.stack(trace)

# %%
env = Corridor()
agent = Agent(env, device=DEV)

# %%
q_values = rollout(env, agent)
