# id = "204"
# cause = "fresh_tensor_no_device"
# also_causes = ["input_not_moved", "nested_batch_partly_moved"]
# culprit = "mb.advantage"
# also_culprit = ["data.advantage", "data", "mb"]
# culprit_cell = 3
# origin_cell = 2
# also_cells = [4, 1]
# origin = "adv = torch.tensor(rewards)"
# culprit_device = "HOST"
# other_device = "DEV"
# fail_cell = 4
# fix_site = "a function in an earlier cell"
# visible = "raising frame"
# expect_after_fix = "pl.device == torch.device(DEV)"
# [[ref_fix]]
# op = "replace"
# cell = 2
# old = "adv = torch.tensor(rewards)"
# new = "adv = torch.tensor(rewards, device=obs.device)"
# [rerun]
# cells = [2, 4]

# %%
from typing import NamedTuple
import torch
from torch import nn

class Rollout(NamedTuple):
    obs: torch.Tensor
    advantage: torch.Tensor
    old_logp: torch.Tensor

    def minibatch(self, idx):
        return Rollout(*(f[idx] for f in self))

# %%
def collect(policy, n=8):
    with torch.no_grad():
        obs = torch.randn(n, 3, device=DEV)
        logp = policy(obs).log_softmax(-1)[:, 0]
    rewards = [float(i % 3) for i in range(n)]
    adv = torch.tensor(rewards)
    return Rollout(obs, (adv - adv.mean()) / adv.std(), logp)

policy = nn.Linear(3, 2).to(DEV)
opt = torch.optim.Adam(policy.parameters(), lr=1e-2)
data = collect(policy)

# %%
def ppo_update(data, clip=0.2):
    for idx in torch.arange(8).split(4):
        mb = data.minibatch(idx)
        ratio = (policy(mb.obs).log_softmax(-1)[:, 0] - mb.old_logp).exp()
        loss = -torch.min(ratio * mb.advantage, ratio.clamp(1 - clip, 1 + clip) * mb.advantage).mean()
        opt.zero_grad(); loss.backward(); opt.step()
    return loss.detach()

# %%
pl = ppo_update(data)
