# id = "189"
# cause = "input_not_moved"
# also_causes = ["library_returns_cpu", "fresh_tensor_no_device"]
# culprit = "obs"
# also_culprit = ["env.reset()", "torch.zeros(3)"]
# culprit_cell = 2
# origin_cell = 2
# also_cells = [3]
# origin = "return torch.zeros(3)"
# culprit_device = "HOST"
# other_device = "DEV"
# fail_cell = 3
# fix_site = "a function in an earlier cell"
# visible = "first user frame"
# expect_after_fix = "logps.device == torch.device(DEV)"
# # moving only what reset() gives is not enough: step() gives host tensors too
# [[ref_fix]]
# op = "replace"
# cell = 2
# old = "policy(obs)"
# new = "policy(obs.to(DEV))"
# [rerun]
# cells = [2, 3]

# %%
import torch, torch.nn as nn

with torch.device(DEV):
    actor = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 2))

# %%
class Env:
    """returns host tensors, like most of them"""
    def reset(self):
        self.t = 0
        return torch.zeros(3)
    def step(self, action):
        self.t += 1
        return torch.full((3,), 0.1 * self.t), 1.0, self.t >= 3

def rollout(env, policy):
    obs, done, ret = env.reset(), False, 0.0
    logps = []
    while not done:
        dist = torch.distributions.Categorical(logits=policy(obs))
        action = dist.probs.argmax()
        logps.append(dist.log_prob(action))
        obs, reward, done = env.step(action.item()); ret += reward
    return torch.stack(logps), ret

# %%
logps, ret = rollout(Env(), actor)
