# id = "400"
# cause = "model_not_moved"
# also_causes = []
# culprit = "self.target"
# also_culprit = ["agent.curiosity.target", "self.curiosity.target", "self.curiosity._target", "self._target", "agent.curiosity._target", "self._target[0]", "agent.curiosity._target[0]"]
# culprit_cell = 2
# origin_cell = 2
# also_cells = [3, 4]
# origin = "self._target = self.make().requires_grad_(False)"
# culprit_device = "HOST"
# other_device = "DEV"
# fail_cell = 5
# fix_site = "class of the notebook (move method)"
# visible = "only in an object attribute"
# expect_after_fix = "bonus.device == torch.device(DEV) and bonus.shape == (6,)"
# [[ref_fix]]
# op = "run"
# code = "agent.curiosity.target.to(DEV)"
# [rerun]
# cells = [5]

# %%
import torch
from torch import nn

def small_net(n_in, n_out):
    return nn.Sequential(nn.Linear(n_in, 12), nn.ReLU(), nn.Linear(12, n_out))

# %%
class Curiosity:
    """intrinsic reward: how badly a fixed random network is predicted"""
    def __init__(self, make):
        self.make = make
        self.predictor = make()
        self._target = None

    @property
    def target(self):
        if self._target is None:
            self._target = self.make().requires_grad_(False)
        return self._target

    def to(self, device):
        self.predictor.to(device)
        return self

    def reward(self, obs):
        return (self.predictor(obs) - self.target(obs)).pow(2).mean(-1)

# %%
class Agent:
    def __init__(self, n_obs, n_act, device):
        self.policy = small_net(n_obs, n_act).to(device)
        self.curiosity = Curiosity(lambda: small_net(n_obs, 5)).to(device)

    def observe(self, obs):
        obs = torch.as_tensor(obs, dtype=torch.float32).to(next(self.policy.parameters()).device)
        with torch.no_grad():
            return self.policy(obs).argmax(-1), self.curiosity.reward(obs)

# %%
agent = Agent(3, 2, device=DEV)
rollout = [[0.1 * i, 1.0, -0.2 * i] for i in range(6)]

# %%
actions, bonus = agent.observe(rollout)
