# id = "392"
# cause = "fresh_tensor_no_device"
# also_causes = []
# culprit = "adv"
# also_culprit = ["adv_n", "roll['adv']", "roll", "rollout['adv']", "torch.zeros(T)", "advantages"]
# culprit_cell = 4
# origin_cell = 3
# also_cells = [5]
# origin = "advantages = torch.zeros(T)"
# culprit_device = "HOST"
# other_device = "DEV"
# fail_cell = 5
# fix_site = "a function in an earlier cell"
# visible = "raising frame"
# expect_after_fix = "policy_loss.device == torch.device(DEV) and roll['adv'].device == torch.device(DEV)"
# # single numbers of the card may be written into a host tensor, so gae() itself never complains
# [[ref_fix]]
# op = "replace"
# cell = 3
# old = "advantages = torch.zeros(T)"
# new = "advantages = torch.zeros(T, device=rewards.device)"
# [rerun]
# cells = [3, 5]

# %%
import torch
from torch import nn
from torch.distributions import Categorical

device = torch.device(DEV)
actor = nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 3)).to(device)
critic = nn.Linear(4, 1).to(device)

# %%
@torch.no_grad()
def collect(steps):
    """a toy environment that lives on the device of the networks"""
    obs = torch.linspace(-1, 1, steps * 4, device=device).view(steps, 4)
    dist = Categorical(logits=actor(obs))
    act = dist.probs.argmax(-1)
    return dict(obs=obs, act=act, logp=dist.log_prob(act), rew=obs.sum(-1),
                val=critic(obs).squeeze(-1), done=torch.zeros(steps, device=device))

# %%
def gae(rewards, values, dones, gamma=0.99, lam=0.95):
    T = len(rewards)
    advantages = torch.zeros(T)
    running = 0.0
    for t in reversed(range(T)):
        nxt = values[t + 1] if t + 1 < T else 0.0
        alive = 1.0 - dones[t]
        delta = rewards[t] + gamma * nxt * alive - values[t]
        running = delta + gamma * lam * alive * running
        advantages[t] = running
    return advantages

# %%
def ppo_objective(rollout, clip=0.2):
    logp = Categorical(logits=actor(rollout['obs'])).log_prob(rollout['act'])
    ratio = (logp - rollout['logp']).exp()
    adv = rollout['adv']
    adv = (adv - adv.mean()) / (adv.std() + 1e-8)
    surr = torch.min(ratio * adv, ratio.clamp(1 - clip, 1 + clip) * adv)
    return -surr.mean()

# %%
roll = collect(10)
roll['adv'] = gae(roll['rew'], roll['val'], roll['done'])
policy_loss = ppo_objective(roll)
policy_loss.backward()
