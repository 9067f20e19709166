# id = "266"
# cause = "rnn_state"
# also_causes = ["input_not_moved"]
# culprit = "h"
# also_culprit = ["first.h", "segment[0].h", "segment[0]", "rollout.steps[0].h", "rollout.steps[2].h", "self.steps[i].h"]
# culprit_cell = 5
# origin_cell = 3
# also_cells = [4, 2]
# origin = "self.steps.append(Step(obs, h.detach().cpu(), reward))"
# culprit_device = "HOST"
# other_device = "DEV"
# fail_cell = 5
# fix_site = "a user function in the traceback"
# visible = "first user frame"
# expect_after_fix = "h.device == torch.device(DEV) and cell.weight_hh.grad.device == torch.device(DEV)"
# [[ref_fix]]
# op = "replace"
# cell = 5
# old = "h = first.h"
# new = "h = first.h.to(DEV)"
# [rerun]
# cells = [5]

# %%
import torch, torch.nn as nn
from typing import NamedTuple

class Step(NamedTuple):
    obs: torch.Tensor
    h: torch.Tensor       # memory of the agent BEFORE this step
    reward: float

# %%
cell = nn.GRUCell(3, 5).to(DEV)
critic = nn.Linear(5, 1).to(DEV)

# %%
class Rollout:
    def __init__(self, burn_in=0):
        self.steps, self.burn_in = [], burn_in

    def add(self, obs, h, reward):
        # keeps the card free, rollouts get long
        self.steps.append(Step(obs, h.detach().cpu(), reward))

    def segments(self, n):
        for i in range(self.burn_in, len(self.steps), n):
            yield self.steps[i:i + n]

# %%
rollout = Rollout()
memory = torch.zeros(1, 5, device=DEV)
for t in range(6):
    obs = torch.randn(1, 3, device=DEV)
    rollout.add(obs, memory, reward=float(t % 2))
    with torch.no_grad():
        memory = cell(obs, memory)

# %%
# truncated BPTT through the stored segments
cell.zero_grad(); critic.zero_grad()
for first, *rest in rollout.segments(3):
    h = first.h
    loss = 0.0
    for step in (first, *rest):
        h = cell(step.obs, h)
        loss = loss + (critic(h).squeeze() - step.reward) ** 2
    loss.backward()
