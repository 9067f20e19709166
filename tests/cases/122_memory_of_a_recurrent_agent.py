# id = "122"
# cause = "rnn_state"
# also_causes = ["plain_tensor_attribute", "fresh_tensor_no_device"]
# culprit = "self.memory"
# also_culprit = ["runner.memory", "memory"]
# culprit_cell = 3
# origin_cell = 3
# also_cells = [2]
# origin = "self.memory = torch.zeros(n_envs, 6)"
# culprit_device = "HOST"
# other_device = "DEV"
# fail_cell = 4
# fix_site = "class of the notebook"
# visible = "first user frame"
# expect_after_fix = "mem.device == torch.device(DEV) and len(runner.history) == 2"
# [[ref_fix]]
# op = "replace"
# cell = 3
# old = "torch.zeros(n_envs, 6)"
# new = "torch.zeros(n_envs, 6, device=DEV)"
# [rerun]
# cells = [3, 4]

# %%
import torch
from torch import nn
from collections import namedtuple
Step = namedtuple("Step", "obs action memory")

# %%
class Agent(nn.Module):
    def __init__(self, n_obs=4, n_mem=6, n_act=2):
        super().__init__()
        self.cell = nn.GRUCell(n_obs, n_mem)
        self.actor = nn.Linear(n_mem, n_act)
    def act(self, obs, memory):
        memory = self.cell(obs, memory)
        return self.actor(memory).argmax(-1), memory

agent = Agent().to(DEV)

# %%
class Runner:
    def __init__(self, agent, n_envs):
        self.agent = agent
        self.memory = torch.zeros(n_envs, 6)
        self.history = []

    @torch.no_grad()
    def rollout(self, n):
        for _ in range(n):
            obs = torch.rand(len(self.memory), 4).to(DEV)
            action, self.memory = self.agent.act(obs, self.memory)
            self.history.append(Step(obs, action, self.memory))

runner = Runner(agent, n_envs=3)

# %%
runner.rollout(2)
mem = runner.memory
