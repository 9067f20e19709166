# id = "261"
# cause = "plain_tensor_attribute"
# also_causes = ["metric_state"]
# culprit = "self.running"
# also_culprit = ["norm.running", "learner.norm.running", "self.norm.running", "learner.norm", "self.norm"]
# culprit_cell = 2
# origin_cell = 2
# also_cells = [3, 4]
# origin = "self.running = torch.zeros(heads)"
# culprit_device = "HOST"
# other_device = "DEV"
# fail_cell = 4
# fix_site = "class __init__"
# visible = "only in an object attribute"
# expect_after_fix = "advantages.device == torch.device(DEV) and advantages.shape == (5, 3)"
# [[ref_fix]]
# op = "replace"
# cell = 2
# old = "self.running.lerp_(returns.mean(0), self.rate)"
# new = "self.running = self.running.to(returns.device).lerp_(returns.mean(0), self.rate)"
# [rerun]
# cells = [2, 3, 4]

# %%
import torch, torch.nn as nn
import types

def discounted(rewards, gamma):
    """rewards: time x heads"""
    out, acc = [], torch.zeros_like(rewards[0])
    for r in reversed(rewards):
        acc = r + gamma * acc
        out.append(acc)
    return torch.stack(out[::-1])

# %%
class ReturnNormalizer:
    # running mean of the return of every reward head
    def __init__(self, heads, rate=0.05):
        self.rate = rate
        self.running = torch.zeros(heads)
        self.count = 0

    def __call__(self, returns):
        self.running.lerp_(returns.mean(0), self.rate)
        self.count += 1
        return returns - self.running / (1 - (1 - self.rate) ** self.count)

# %%
class Learner(nn.Module):
    def __init__(self, args):
        super().__init__()
        self.value = nn.Linear(args.obs, args.heads)
        self.norm = ReturnNormalizer(args.heads)
        self.gamma = args.gamma

    def advantage(self, obs, rewards):
        ret = self.norm(discounted(rewards, self.gamma))
        return ret - self.value(obs)

args = types.SimpleNamespace(obs=4, heads=3, gamma=0.9)
learner = Learner(args).to(DEV)

# %%
obs, rewards = torch.randn(5, 4, device=DEV), torch.rand(5, 3, device=DEV)
with torch.no_grad():
    advantages = learner.advantage(obs, rewards)
