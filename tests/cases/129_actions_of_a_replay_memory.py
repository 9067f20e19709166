# id = "129"
# cause = "index_device"
# also_causes = ["input_not_moved", "fresh_tensor_no_device"]
# culprit = "action_batch"
# also_culprit = ["batch.action", "torch.cat(batch.action)", "torch.tensor([[n % 2]])", "batch.action[0]"]
# culprit_cell = 3
# origin_cell = 2
# also_cells = []
# origin = "memory.push(torch.randn(1, 4, device=DEV), torch.tensor([[n % 2]]), torch.tensor([1.0], device=DEV))"
# culprit_device = "HOST"
# other_device = "DEV"
# fail_cell = 4
# fix_site = "earlier cell"
# visible = "first user frame"
# expect_after_fix = "td.device == torch.device(DEV)"
# [[ref_fix]]
# op = "replace"
# cell = 2
# old = "torch.tensor([[n % 2]])"
# new = "torch.tensor([[n % 2]], device=DEV)"
# [rerun]
# cells = [2, 4]

# %%
import random
from collections import deque, namedtuple
import torch
from torch import nn
Transition = namedtuple("Transition", ("state", "action", "reward"))

# %%
class ReplayMemory:
    def __init__(self, capacity):
        self.memory = deque([], maxlen=capacity)
    def push(self, *args):
        self.memory.append(Transition(*args))
    def sample(self, k):
        return self.memory if k >= len(self.memory) else list(self.memory)[:k]

policy_net = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 2)).to(DEV)
memory = ReplayMemory(100)
for n in range(8):
    memory.push(torch.randn(1, 4, device=DEV), torch.tensor([[n % 2]]), torch.tensor([1.0], device=DEV))

# %%
def optimize_model(batch_size=6, gamma=0.9):
    batch = Transition(*zip(*memory.sample(batch_size)))
    state_batch, action_batch = torch.cat(batch.state), torch.cat(batch.action)
    reward_batch = torch.cat(batch.reward)
    q = policy_net(state_batch).gather(1, action_batch)
    loss = nn.functional.smooth_l1_loss(q, reward_batch.unsqueeze(1))
    loss.backward()
    return loss.detach()

# %%
td = optimize_model()
