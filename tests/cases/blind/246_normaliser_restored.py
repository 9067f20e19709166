# id = "246"
# cause = "checkpoint_location"
# also_causes = ["plain_tensor_attribute"]
# culprit = "self.mean"
# also_culprit = ["self.var", "agent.obs_rms", "agent.obs_rms.mean", "agent.obs_rms.var", "state", "state['mean']", "self.obs_rms", "payload['parts']['obs_rms']", "part"]
# culprit_cell = 1
# origin_cell = 2
# also_cells = [2, 3, 4]
# origin = "payload = torch.load(self.files[-1], map_location='cpu', weights_only=False)"
# culprit_device = "HOST"
# other_device = "DEV"
# fail_cell = 5
# fix_site = "checkpoint load"
# visible = "only in an object attribute"
# expect_after_fix = "agent.obs_rms.mean.device == torch.device(DEV) and action.device == torch.device(DEV)"
# [[ref_fix]]
# op = "replace"
# cell = 2
# old = "map_location='cpu'"
# new = "map_location=DEV"
# [rerun]
# cells = [2, 4, 5]

# %%
import os, tempfile
import torch
from torch import nn

class RunningMeanStd:
    def __init__(self, dim, device):
        self.mean = torch.zeros(dim, device=device)
        self.var = torch.ones(dim, device=device)

    def update(self, x):
        self.mean, self.var = x.mean(0), x.var(0)

    def __call__(self, x):
        return (x - self.mean) / (self.var + 1e-5).sqrt()

    def state_dict(self):
        return {'mean': self.mean, 'var': self.var}

    def load_state_dict(self, state):
        self.__dict__.update(state)

class Agent:
    def __init__(self, obs_dim, n_act, device):
        self.obs_rms = RunningMeanStd(obs_dim, device)
        self.actor = nn.Sequential(nn.Linear(obs_dim, 8), nn.Tanh(), nn.Linear(8, n_act)).to(device)

    @torch.no_grad()
    def act(self, obs):
        return self.actor(self.obs_rms(obs)).tanh()

# %%
class CheckpointManager:
    """every registered part that can be restored is restored"""
    def __init__(self, **parts):
        self.parts, self.files = parts, []
        self.folder = tempfile.mkdtemp(prefix='ppo_')

    def save(self, step):
        self.files.append(os.path.join(self.folder, f'step{step:04d}.pt'))
        torch.save({'step': step, 'parts': {n: p.state_dict() for n, p in self.parts.items()}}, self.files[-1])

    def restore_latest(self):
        # on the host first, the card is shared
        payload = torch.load(self.files[-1], map_location='cpu', weights_only=False)
        for name, part in self.parts.items():
            part.load_state_dict(payload['parts'][name])
        return payload['step']

# %%
rollout = torch.linspace(-1, 5, 40).view(10, 4)

# %%
agent = Agent(4, 2, DEV)
agent.obs_rms.update(rollout.to(DEV))
manager = CheckpointManager(actor=agent.actor, obs_rms=agent.obs_rms)
manager.save(100)
print('crash! resuming from step', manager.restore_latest())

# %%
action = agent.act(rollout[:2].to(DEV))
