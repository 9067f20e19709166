"""Deep Q-learning on a small corridor: a replay buffer on the host, networks on the card."""

# %%
import math
import random
from collections import deque, namedtuple

import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim

device = torch.device(DEV)
random.seed(0)
Transition = namedtuple("Transition", ("state", "action", "next_state", "reward"))


# %%
class Corridor:
    """Walk right to the door at 6; every step costs a little."""

    def reset(self):
        self.place, self.steps = 3, 0
        return self.observe()

    def observe(self):
        state = torch.zeros(7)
        state[self.place] = 1.0
        return state

    def step(self, action):
        self.place = max(0, self.place + (1 if action == 1 else -1))
        self.steps += 1
        arrived = self.place == 6
        return self.observe(), 1.0 if arrived else -0.05, arrived or self.steps >= 20


class ReplayMemory:
    def __init__(self, capacity):
        self.memory = deque([], maxlen=capacity)

    def push(self, *args):
        self.memory.append(Transition(*args))

    def sample(self, batch_size):
        return random.sample(self.memory, batch_size)

    def __len__(self):
        return len(self.memory)


class DQN(nn.Module):
    def __init__(self, n_observations, n_actions):
        super().__init__()
        self.layer1 = nn.Linear(n_observations, 32)
        self.layer2 = nn.Linear(32, n_actions)

    def forward(self, x):
        return self.layer2(F.relu(self.layer1(x)))


# %%
BATCH_SIZE, GAMMA, TAU, LR = 16, 0.95, 0.05, 1e-2
env = Corridor()
policy_net = DQN(7, 2).to(device)
target_net = DQN(7, 2).to(device)
target_net.load_state_dict(policy_net.state_dict())
optimizer = optim.AdamW(policy_net.parameters(), lr=LR, amsgrad=True)
memory = ReplayMemory(200)
losses, returns = [], []
steps_done = 0


# %%
def select_action(state):
    global steps_done
    threshold = 0.05 + 0.85 * math.exp(-steps_done / 60)
    steps_done += 1
    if random.random() > threshold:
        with torch.no_grad():
            return policy_net(state).max(1).indices.view(1, 1)
    return torch.tensor([[random.randrange(2)]], device=device, dtype=torch.long)


def optimize_model():
    if len(memory) < BATCH_SIZE:
        return
    batch = Transition(*zip(*memory.sample(BATCH_SIZE)))
    non_final = torch.tensor([s is not None for s in batch.next_state], device=device)
    next_states = torch.cat([s for s in batch.next_state if s is not None]).to(device)
    state_batch = torch.cat(batch.state).to(device)
    action_batch = torch.cat(batch.action).to(device)
    reward_batch = torch.cat(batch.reward).to(device)

    values = policy_net(state_batch).gather(1, action_batch)
    next_values = torch.zeros(BATCH_SIZE, device=device)
    with torch.no_grad():
        next_values[non_final] = target_net(next_states).max(1).values
    expected = next_values * GAMMA + reward_batch

    loss = nn.SmoothL1Loss()(values, expected.unsqueeze(1))
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_value_(policy_net.parameters(), 100)
    optimizer.step()
    losses.append(loss.item())


# %%
for episode in range(8):
    state = env.reset().unsqueeze(0)
    total, done = 0.0, False
    while not done:
        action = select_action(state.to(device))
        observation, reward, done = env.step(action.item())
        next_state = None if done else observation.unsqueeze(0)
        memory.push(state, action.cpu(), next_state, torch.tensor([reward]))
        state = next_state
        total += reward
        optimize_model()
        target_state = target_net.state_dict()
        policy_state = policy_net.state_dict()
        for key in policy_state:
            target_state[key] = policy_state[key] * TAU + target_state[key] * (1 - TAU)
        target_net.load_state_dict(target_state)
    returns.append(total)

# %%
table = policy_net(torch.eye(7, device=device)).detach().cpu().numpy()
print("returns", [round(r, 2) for r in returns])
losses += returns + table.sum(0).tolist()
