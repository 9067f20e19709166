# id = "243"
# cause = "stray_in_collection"
# also_causes = ["fresh_tensor_no_device", "cuda_in_dataset"]
# culprit = "self.episodes"
# also_culprit = ["seqs", "seqs[0]", "memory.episodes", "memory.episodes[0]", "memory.episodes[0]['obs']", "e['obs']", "memory", "torch.zeros(1, obs_dim)"]
# culprit_cell = 2
# origin_cell = 2
# also_cells = [3, 4, 5]
# origin = "self.add(torch.zeros(1, obs_dim), 0.)"
# culprit_device = "HOST"
# other_device = "DEV"
# fail_cell = 5
# fix_site = "class __init__"
# visible = "raising frame"
# expect_after_fix = "steps.device == torch.device(DEV) and next_obs.device == torch.device(DEV) and len(steps) == sum(lengths) and len(lengths) == 4"
# # the dummy that keeps the memory from being empty never saw the card
# [[ref_fix]]
# op = "replace"
# cell = 2
# old = "seqs = [e['obs'] for e in self.pick(k)]"
# new = "seqs = [e['obs'].to(DEV) for e in self.pick(k)]"
# [rerun]
# cells = [1, 2, 3, 4, 5]

# %%
import torch
from torch import nn

# %%
class EpisodeMemory:
    def __init__(self, capacity, obs_dim):
        self.capacity = capacity
        self.episodes = []
        self.add(torch.zeros(1, obs_dim), 0.)      # never empty

    def add(self, obs, ret):
        self.episodes.append({'obs': obs, 'return': ret})
        if len(self.episodes) > self.capacity:
            self.episodes.pop(0)

    def pick(self, k):
        # curriculum: the worst first
        return sorted(self.episodes, key=lambda e: e['return'])[:k]

    def sample(self, k):
        seqs = [e['obs'] for e in self.pick(k)]
        return torch.vstack(seqs), [len(s) for s in seqs]

# %%
class Walker:
    """toy environment"""
    def __init__(self, policy):
        self.policy = policy

    def rollout(self, n):
        obs = torch.ones(3, device=DEV)
        track = []
        for _ in range(n):
            obs = torch.tanh(obs + self.policy(obs))
            track.append(obs)
        track = torch.stack(track)
        return track, track.sum().abs().item() + n

# %%
policy = nn.Linear(3, 3).to(DEV).requires_grad_(False)
memory = EpisodeMemory(10, obs_dim=3)
walker = Walker(policy)
for n in (2, 3, 4, 2):
    memory.add(*walker.rollout(n))

# %%
steps, lengths = memory.sample(4)
next_obs = policy(steps)
print(lengths)
