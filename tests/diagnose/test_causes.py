"""Small notebooks for every class of mistake that virtual cards can raise: the cause, and the name of the culprit.

They are not those of tests/cases: written for one rule each, and judged by it alone.
"""

from __future__ import annotations

import re

import pytest
from failing import Notebook

from ipydevice.diagnose.words import EXPLANATIONS

NET = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(3, 2)
    def forward(self, x):
        return self.fc(x)
"""

# (cause, culprit's expression, cells separated by three dashes)
MISTAKES: list[tuple[str, str, str]] = [
    ("input_not_moved", "x", NET + """
---
net = Net().to(DEV)
data = [torch.ones(4, 3)]
---
for x in data:
    out = net(x)
"""),
    ("input_not_moved", "features", """
net = nn.Linear(3, 2).to(DEV)
features = torch.ones(4, 3)
---
out = net(features)
"""),
    ("input_not_moved", "frame['pixels']", """
frame = {'pixels': torch.ones(1, 3, 8, 8)}
conv = nn.Conv2d(3, 4, 3).to(DEV)
---
conv(frame['pixels'])
"""),
    ("label_not_moved", "labels", """
net = nn.Linear(3, 2).to(DEV)
images, labels = torch.ones(4, 3, device=DEV), torch.zeros(4, dtype=torch.int64)
---
loss = F.cross_entropy(net(images), labels)
"""),
    ("label_not_moved", "y", """
net = nn.Linear(3, 1).to(DEV)
criterion = nn.MSELoss()
loader = [(torch.ones(4, 3), torch.ones(4, 1))]
---
for x, y in loader:
    loss = criterion(net(x.to(DEV)), y)
"""),
    ("must_be_cpu", "states", """
states = torch.get_rng_state().to(DEV)
---
torch.set_rng_state(states)
"""),
    ("fresh_tensor_no_device", "noise", """
def corrupt(x):
    noise = torch.randn(4, 3)
    return x + noise
---
x = torch.ones(4, 3, device=DEV)
corrupt(x)
"""),
    ("fresh_tensor_no_device", "torch.arange(3)", """
x = torch.ones(3, device=DEV)
---
y = x * torch.arange(3)
"""),
    ("fresh_tensor_no_device", "mask", """
class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.q = nn.Linear(3, 3)
    def forward(self, x):
        scores = self.q(x) @ x.mT
        mask = torch.tril(torch.ones(2, 2))
        return scores * mask
---
att = Attention().to(DEV)
x = torch.ones(1, 2, 3, device=DEV)
---
att(x)
"""),
    ("model_not_moved", "net", NET + """
---
net = Net()
x = torch.ones(4, 3, device=DEV)
---
net(x)
"""),
    ("model_not_moved", "teacher", """
student, teacher = nn.Linear(3, 2).to(DEV), nn.Linear(3, 2)
x = torch.ones(4, 3, device=DEV)
---
gap = student(x) - teacher(x)
"""),
    ("plain_tensor_attribute", "self.mean", """
class Norm(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(3, 3)
        self.mean = torch.full((3,), .5)
    def forward(self, x):
        return self.fc(x - self.mean)
---
norm = Norm().to(DEV)
x = torch.ones(2, 3, device=DEV)
---
norm(x)
"""),
    ("plain_tensor_attribute", "self.scales[0]", """
class Scaled(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(3, 3)
        self.scales = [torch.ones(3)]
    def forward(self, x):
        return self.fc(x) * self.scales[0]
---
net = Scaled().to(DEV)
x = torch.ones(2, 3, device=DEV)
net(x)
"""),
    ("module_in_plain_container", "layer", """
class Deep(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(3, 3)
        self.layers = [nn.Linear(3, 3) for _ in range(2)]
    def forward(self, x):
        x = self.first(x)
        for layer in self.layers:
            x = layer(x)
        return x
---
deep = Deep().to(DEV)
x = torch.ones(2, 3, device=DEV)
---
deep(x)
"""),
    ("module_in_plain_container", "self.heads['age']", """
class Heads(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(3, 3)
        self.heads = {'age': nn.Linear(3, 1)}
    def forward(self, x):
        return self.heads['age'](self.body(x))
---
net = Heads().to(DEV)
x = torch.ones(2, 3, device=DEV)
net(x)
"""),
    ("module_built_in_forward", "nn.Linear(3, 2)", """
class Lazy(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(3, 3)
    def forward(self, x):
        return nn.Linear(3, 2)(self.fc(x))
---
net = Lazy().to(DEV)
x = torch.ones(2, 3, device=DEV)
net(x)
"""),
    ("module_built_in_forward", "proj", """
class Lazy(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(3, 3)
    def forward(self, x):
        x = self.fc(x)
        proj = nn.Linear(3, 2)
        return proj(x)
---
net = Lazy().to(DEV)
x = torch.ones(2, 3, device=DEV)
net(x)
"""),
    ("module_added_after_move", "net.head", """
class Two(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.head = nn.Linear(3, 3), nn.Linear(3, 2)
    def forward(self, x):
        return self.head(self.body(x))
---
net = Two().to(DEV)
---
net.head = nn.Linear(3, 5)
---
x = torch.ones(2, 3, device=DEV)
net.head(net.body(x))
"""),
    ("module_added_after_move", "self.head", """
class Two(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.head = nn.Linear(3, 3), nn.Linear(3, 2)
    def grow(self, n):
        self.head = nn.Linear(3, n)
    def forward(self, x):
        return self.head(self.body(x))
---
net = Two().to(DEV)
net.grow(7)
x = torch.ones(2, 3, device=DEV)
---
net(x)
"""),
    ("framework_moved_model", "model", """
class Trainer:
    def fit(self, model):
        model.to(DEV)
        model.cpu()
---
model = nn.Linear(3, 2)
trainer = Trainer()
trainer.fit(model)
---
x = torch.ones(2, 3, device=DEV)
model(x)
"""),
    ("framework_moved_model", "net", """
class Finder:
    def run(self, net):
        net.cpu()
net = nn.Linear(3, 2).to(DEV)
Finder().run(net)
---
x = torch.ones(2, 3, device=DEV)
net(x)
"""),
    ("loss_weight", "criterion.weight", """
criterion = nn.CrossEntropyLoss(weight=torch.tensor([1., 2.]))
net = nn.Linear(3, 2).to(DEV)
---
x, y = torch.ones(4, 3, device=DEV), torch.zeros(4, dtype=torch.int64, device=DEV)
loss = criterion(net(x), y)
"""),
    ("loss_weight", "bce.pos_weight", """
bce = nn.BCEWithLogitsLoss(pos_weight=torch.tensor([3.]))
---
bce(torch.ones(4, 1, device=DEV), torch.ones(4, 1, device=DEV))
"""),
    ("metric_state", "self.correct", """
class Accuracy:
    def __init__(self):
        self.correct = torch.zeros(2)
    def update(self, pred, true):
        self.correct += (pred == true).float()
    def compute(self):
        return self.correct.mean()
---
accuracy = Accuracy()
a = torch.ones(2, device=DEV)
---
accuracy.update(a, a)
"""),
    ("metric_state", "metric.matrix", """
class ConfusionMatrix(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.register_buffer('matrix', torch.zeros(n, n))
    def update(self, counts):
        self.matrix = self.matrix + counts
    def compute(self):
        return self.matrix
---
metric = ConfusionMatrix(2)
---
metric.update(torch.ones(2, 2, device=DEV))
"""),
    ("ema_shadow", "self.shadow[k]", """
class Averaged:
    def __init__(self, net):
        self.shadow = {k: v.clone() for k, v in net.state_dict().items()}
    def update(self, net):
        for k, v in net.state_dict().items():
            self.shadow[k] = self.shadow[k] * .9 + v * .1
---
net = nn.Linear(3, 2)
ema = Averaged(net)
net.to(DEV)
---
ema.update(net)
"""),
    ("ema_shadow", "ema_model", """
import copy
net = nn.Linear(3, 2)
ema_model = copy.deepcopy(net)
net.to(DEV)
x = torch.ones(2, 3, device=DEV)
---
loss = (net(x) - ema_model(x)).sum()
"""),
    ("optimizer_state", "opt.state[net.weight]['exp_avg']", """
net = nn.Linear(3, 2)
opt = torch.optim.Adam(net.parameters())
net(torch.ones(1, 3)).sum().backward()
opt.step()
---
net.to(DEV)
---
opt.zero_grad()
net(torch.ones(1, 3, device=DEV)).sum().backward()
opt.step()
"""),
    ("optimizer_state", "sgd.state[net.weight]['momentum_buffer']", """
net = nn.Linear(3, 2, bias=False)
sgd = torch.optim.SGD(net.parameters(), lr=.1, momentum=.9)
net(torch.ones(1, 3)).sum().backward()
sgd.step()
net.to(DEV)
---
net(torch.ones(1, 3, device=DEV)).sum().backward()
sgd.step()
"""),
    ("rnn_state", "h0", """
gru = nn.GRU(3, 4, batch_first=True).to(DEV)
x = torch.ones(2, 5, 3, device=DEV)
h0 = torch.zeros(1, 2, 4)
---
out, h = gru(x, h0)
"""),
    ("rnn_state", "self.hidden", """
class Agent(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell = nn.GRUCell(3, 4)
        self.hidden = torch.zeros(1, 4)
    def forward(self, x):
        self.hidden = self.cell(x, self.hidden)
        return self.hidden
---
agent = Agent().to(DEV)
x = torch.ones(1, 3, device=DEV)
---
agent(x)
"""),
    ("stale_cache", "self.cache", """
class Masked(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(3, 3)
        self.cache = None
    def forward(self, x):
        if self.cache is None:
            self.cache = torch.ones(x.shape[-1], device=x.device)
        return self.fc(x) * self.cache
---
net = Masked()
net(torch.ones(2, 3))
net.to(DEV)
---
net(torch.ones(2, 3, device=DEV))
"""),
    ("stale_cache", "self.table", """
class Angles(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(3, 3)
        self.table = None
    def angles(self, x):
        if self.table is None:
            self.table = torch.cos(torch.arange(3, device=x.device))
        return self.table
    def forward(self, x):
        self.angles(x)
        return self.fc(x) * self.table
---
net = Angles()
net(torch.ones(2, 3))
net = net.to(DEV)
---
x = torch.ones(2, 3, device=DEV)
net(x)
"""),
    ("derived_tensor_in_init", "self.norm", """
class Unit(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(3))
        self.norm = self.weight.detach() * 2
    def forward(self, x):
        return x * self.weight / self.norm
---
net = Unit().to(DEV)
x = torch.ones(3, device=DEV)
net(x)
"""),
    ("derived_tensor_in_init", "self.tied", """
class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(3, 3)
        self.tied = self.fc.weight.t() + 0
    def forward(self, x):
        return self.fc(x) @ self.tied
---
net = Tied().to(DEV)
x = torch.ones(2, 3, device=DEV)
net(x)
"""),
    ("closure_constant", "mean", """
def normaliser():
    mean = torch.zeros(3)
    def normalise(x):
        return x - mean
    return normalise
---
f = normaliser()
---
f(torch.ones(3, device=DEV))
"""),
    ("closure_constant", "offset", """
def shift(x, offset=torch.ones(3)):
    return x + offset
---
shift(torch.ones(3, device=DEV))
"""),
    ("checkpoint_location", "state['mean']", """
torch.save({'mean': torch.ones(3)}, 'state.pt')
---
state = torch.load('state.pt')
x = torch.ones(3, device=DEV)
---
x - state['mean']
"""),
    ("checkpoint_location", "prototypes", """
torch.save(torch.ones(3), 'p.pt')
prototypes = torch.load('p.pt', map_location='cpu')
---
x = torch.ones(3, device=DEV)
x * prototypes
"""),
    ("hardcoded_device", "noise", """
def add_noise(x):
    noise = torch.randn(3).to('cuda')
    return x + noise
---
add_noise(torch.ones(3, device=DEV2))
"""),
    ("hardcoded_device", "grid", """
def warp(x):
    grid = torch.ones(3).cuda()
    return x * grid
---
x = torch.ones(3, device=DEV2)
warp(x)
"""),
    ("to_result_discarded", "x", """
net = nn.Linear(3, 2).to(DEV)
x = torch.ones(2, 3)
x.to(DEV)
---
net(x)
"""),
    ("to_result_discarded", "batch['ids']", """
table = nn.Embedding(5, 2).to(DEV)
batch = {'ids': torch.zeros(3, dtype=torch.int64)}
---
for value in batch.values():
    value.to(DEV)
table(batch['ids'])
"""),
    ("default_device_global", "edges", """
torch.set_default_device(DEV)
---
edges = torch.arange(3.)
host = torch.ones(3, device='cpu')
---
host * edges
"""),
    ("default_device_global", "order", """
torch.set_default_device(DEV)
---
data = torch.ones(5, 3, device='cpu')
order = torch.randperm(5)
---
data[order]
"""),
    ("model_split_multi_gpu", "h", """
a, b = nn.Linear(3, 3).to(DEV), nn.Linear(3, 3).to(DEV2)
x = torch.ones(2, 3, device=DEV)
---
h = a(x)
y = b(h)
"""),
    ("model_split_multi_gpu", "x", """
class Split(nn.Module):
    def __init__(self):
        super().__init__()
        self.low, self.high = nn.Linear(3, 3), nn.Linear(3, 3)
        self.low.to(DEV)
        self.high.to(DEV2)
    def forward(self, x):
        x = self.low(x)
        return self.high(x)
---
net = Split()
net(torch.ones(2, 3, device=DEV))
"""),
    ("nested_batch_partly_moved", "batch['extra']['mask']", """
def move(b):
    return {k: v.to(DEV) if torch.is_tensor(v) else v for k, v in b.items()}
batch = move({'x': torch.ones(3), 'extra': {'mask': torch.ones(3)}})
---
batch['x'] * batch['extra']['mask']
"""),
    ("nested_batch_partly_moved", "batch.second", """
from typing import NamedTuple
class Pair(NamedTuple):
    first: torch.Tensor
    second: torch.Tensor
batch = Pair(torch.ones(3).to(DEV), torch.ones(3))
---
batch.first + batch.second
"""),
    ("stray_in_collection", "b", """
a, b = torch.ones(3, device=DEV), torch.ones(3)
---
torch.cat([a, b])
"""),
    ("stray_in_collection", "parts[1]", """
parts = [torch.ones(3, device=DEV), torch.ones(3), torch.ones(3, device=DEV)]
---
torch.stack(parts)
"""),
    ("index_device", "idx", """
table = torch.ones(5, 3)
idx = torch.zeros(2, dtype=torch.int64, device=DEV)
---
table[idx]
"""),
    ("index_device", "order", """
x = torch.ones(5, 3, device=DEV)
order = torch.zeros(2, 3, dtype=torch.int64)
---
x.gather(0, order)
"""),
    ("library_returns_cpu", "table", """
import numpy as np
def distances(n):
    return torch.from_numpy(np.ones((n, n), dtype='float32'))
---
table = torch.from_numpy(np.cumsum(np.ones(3)))
x = torch.ones(3, device=DEV, dtype=torch.float64)
---
x * table
"""),
    ("library_returns_cpu", "window", """
import numpy as np
window = torch.tensor(np.hanning(3))
---
x = torch.ones(3, device=DEV, dtype=torch.float64)
x * window
"""),
    ("to_numpy", "x", """
x = torch.ones(3, device=DEV)
---
x.numpy()
"""),
    ("to_numpy", "losses[0]", """
import numpy as np
losses = [torch.ones((), device=DEV)]
---
np.mean(losses)
"""),
    ("must_be_cpu", "lengths", """
from torch.nn.utils.rnn import pack_padded_sequence
x = torch.ones(2, 4, 3, device=DEV)
lengths = torch.tensor([4, 2], device=DEV)
---
pack_padded_sequence(x, lengths, batch_first=True)
"""),
    ("must_be_cpu", "mask.sum(1)", """
from torch.nn.utils.rnn import pack_padded_sequence
x = torch.ones(2, 4, 3, device=DEV)
mask = torch.ones(2, 4, dtype=torch.int64, device=DEV)
---
pack_padded_sequence(x, mask.sum(1), batch_first=True, enforce_sorted=False)
"""),
    ("generator_device", "g", """
g = torch.Generator().manual_seed(0)
---
torch.randn(3, generator=g, device=DEV)
"""),
    ("generator_device", "rng", """
rng = torch.Generator(device=DEV)
---
torch.randperm(5, generator=rng)
"""),
    ("cuda_in_dataset", "torch.ones(3, device=DEV)", """
class Data(torch.utils.data.Dataset):
    def __len__(self):
        return 4
    def __getitem__(self, i):
        return torch.ones(3) if i else torch.ones(3, device=DEV)
---
loader = torch.utils.data.DataLoader(Data(), batch_size=2)
---
for x in loader:
    pass
"""),
    ("cuda_in_dataset", "x.to(DEV)", """
class Pictures(torch.utils.data.Dataset):
    def __len__(self):
        return 4
    def __getitem__(self, i):
        x = torch.ones(3)
        if i % 2:
            x = x.to(DEV)
        return {'x': x}
---
for batch in torch.utils.data.DataLoader(Pictures(), batch_size=2):
    pass
"""),
    ("meta_not_materialized", "net", """
with torch.device('meta'):
    net = nn.Linear(3, 2)
---
net(torch.ones(1, 3, device=DEV))
"""),
    ("meta_not_materialized", "empty", """
empty = torch.empty(3, device='meta')
---
torch.ones(3, device=DEV) + empty
"""),
    ("no_accelerator", "", """
torch.ones(3).to('cuda:7')
"""),
    ("no_accelerator", "", """
net = nn.Linear(3, 2)
---
net.to('cuda:5')
"""),
    # An item that += indexes: the load of the item fails first.
    ("index_device", "idx", """
counts = torch.zeros(3)
idx = torch.tensor([0, 1], device=DEV)
---
counts[idx] += 1
"""),
    # A pipeline by design: what travels is stray, not the half that stays.
    ("model_split_multi_gpu", "h", """
class Two(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(4, 4).to('cuda:0'), nn.Linear(4, 4).to('cuda:1')
    def forward(self, x):
        h = self.a(x)
        return self.b(h)
---
two = Two()
---
two(torch.ones(2, 4, device='cuda:0'))
"""),
    # Raised in a thread, shown where its result is asked for.
    ("input_not_moved", "batch", """
from concurrent.futures import ThreadPoolExecutor
net, batch = nn.Linear(4, 2).to(DEV), torch.ones(3, 4)
---
ThreadPoolExecutor(1).submit(net, batch).result()
"""),
    ("cuda_in_dataset", "loader", """
from torch.utils.data import DataLoader, TensorDataset
loader = DataLoader(TensorDataset(torch.ones(4, 2, device=DEV)), batch_size=2, pin_memory=True)
---
for (x,) in loader:
    pass
"""),
    ("hardcoded_device", "rows", """
device = torch.device(DEV)
net = nn.Linear(3, 2).to(device)
def collate(rows):
    return torch.stack(rows).to('cuda:1')
loader = torch.utils.data.DataLoader([torch.ones(3)] * 4, batch_size=2, collate_fn=collate)
---
for rows in loader:
    net(rows)
"""),
    ("hardcoded_device", "net", """
device = torch.device(DEV)
def make(width):
    return nn.Sequential(nn.Linear(3, width), nn.ReLU())
nets = [make(n).to('cuda:1') for n in (2, 4)]
x = torch.ones(2, 3, device=device)
---
out = [net(x) for net in nets]
"""),
    ("hardcoded_device", "noise", """
class Settings:
    device = DEV
class Jitter:
    def __init__(self, settings):
        self.__dict__.update(device=settings.device)
    def __call__(self, x):
        noise = torch.full(x.shape, 0.1, device=self.device)
        return x + noise
jitter, net = Jitter(Settings), nn.Linear(3, 2).to(DEV2)
---
net(jitter(torch.ones(2, 3).to(DEV2)))
"""),
    ("model_split_multi_gpu", "term", """
class Half(nn.Module):
    def __init__(self, device):
        super().__init__()
        self.fc, self.device, self.aux = nn.Linear(3, 3).to(device), device, None
    def forward(self, x):
        x = self.fc(x.to(self.device))
        self.aux = x.square().mean()
        return x
class Both(nn.Module):
    def __init__(self):
        super().__init__()
        self.halves = nn.ModuleList([Half(DEV), Half(DEV2)])
        self.aux = {}
    def forward(self, x):
        for i, half in enumerate(self.halves):
            x = half(x)
            self.aux[i] = half.aux
        return x
net = Both()
---
loss = net(torch.ones(2, 3)).sum()
for i, term in reversed(net.aux.items()):
    loss = loss + 0.1 * term
"""),
    ("fresh_tensor_no_device", "gain", """
net = nn.Linear(3, 2).to(DEV)
def gains(x):
    out = torch.zeros(len(x))
    for i in range(len(x)):
        out[i] = x[i].sum()
    return out
def loss(batch):
    gain = batch['gain']
    return (net(batch['x']).sum(1) * gain).mean()
---
batch = {'x': torch.ones(4, 3, device=DEV)}
batch['gain'] = gains(batch['x'])
loss(batch)
"""),
    ("plain_tensor_attribute", "self.mix", """
class Mixer(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc, self._mix = nn.Linear(3, 3), torch.eye(3)
    @property
    def mix(self):
        return self._mix
    def forward(self, x):
        return torch.mm(self.mix, self.fc(x))
net = Mixer().to(DEV)
---
net(torch.ones(3, 3, device=DEV))
"""),
    ("index_device", "last", """
lengths = torch.tensor([3, 1])
def final(states, lengths):
    last = (lengths - 1).view(-1, 1, 1).expand(-1, -1, states.shape[2])
    return states.gather(1, last)
---
final(torch.ones(2, 3, 4, device=DEV), lengths)
"""),
    ("index_device", "cls.palette", """
class Painter:
    palette = torch.tensor([[0., 0., 0.], [1., 0., 0.]])
    @classmethod
    def paint(cls, ids):
        return cls.palette[ids]
---
Painter.paint(torch.tensor([0, 1], device=DEV))
"""),
    ("rnn_state", "self.tail", """
import contextlib
class Stream(nn.Conv1d):
    tail = None
    def forward(self, x):
        if self.tail is None:
            return super().forward(x)
        return super().forward(torch.cat((self.tail, x), dim=-1))
@contextlib.contextmanager
def streaming(layer):
    layer.tail = torch.zeros(1, 2, 1)
    try:
        yield layer
    finally:
        layer.tail = None
net = Stream(2, 2, 2).to(DEV)
---
with streaming(net) as live:
    live(torch.ones(1, 2, 4, device=DEV))
"""),
    ("module_in_plain_container", "step.keywords['net']", """
import functools
def add(x, net):
    return x + net(x)
class Flow(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(3))
        self.steps = [functools.partial(add, net=nn.Linear(3, 3)) for _ in range(2)]
    def forward(self, x):
        for step in self.steps:
            x = step(x * self.scale)
        return x
flow = Flow().to(DEV)
---
flow(torch.ones(2, 3, device=DEV))
"""),
    ("traced_constant", "graph", """
import torch.fx
class Head(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(3, 2)
    def forward(self, x):
        return self.fc(x.to(next(self.parameters()).device))
---
graph = torch.fx.symbolic_trace(Head()).to(DEV)
---
graph(torch.ones(2, 3, device=DEV))
"""),
    ("traced_constant", "service['net']", """
import torch.fx
class Head(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc, self.home = nn.Linear(3, 2), torch.device('cpu')
    def forward(self, x):
        return self.fc(x.to(self.home))
---
service = {'net': torch.fx.symbolic_trace(Head()).eval()}
service['net'].to(DEV)
---
service['net'](torch.ones(2, 3).to(DEV))
"""),
    ("ddp_wrong_device", "x", """
net = nn.Linear(3, 2).to(DEV2)
---
x = torch.ones(4, 3).cuda()
net(x)
"""),
    ("ddp_wrong_device", "net", """
net = nn.Linear(3, 2).to(torch.device('cuda'))
---
net(torch.ones(4, 3, device=DEV2))
"""),
    ("ddp_wrong_device", "net", """
net = nn.DataParallel(nn.Linear(3, 2).to(DEV2))
---
net(torch.ones(4, 3, device=DEV2))
"""),
    ("input_not_moved", "h", """
cell, h = nn.GRUCell(3, 5).cuda(), torch.zeros(2, 5)
---
for t in range(4):
    h = cell(torch.ones(2, 3).cuda(), h)
"""),
    ("stray_in_collection", "nxt", """
lm = nn.Sequential(nn.Embedding(10, 4), nn.Linear(4, 10)).to('cuda')
def generate(prompt):
    ids = prompt.to('cuda')
    for _ in range(3):
        nxt = lm(ids)[:, -1].argmax(-1, keepdim=True).cpu()
        ids = torch.cat([ids, nxt], 1)
    return ids
---
generate(torch.tensor([[1, 2, 3]]))
"""),
    ("hardcoded_device", "log['a']", """
log = {}
def keep(name, t):
    log[name] = t.cpu()
a = torch.ones(3).cuda()
keep('a', a)
---
a + log['a']
"""),
    ("module_added_after_move", "net[2]", """
net = nn.Sequential(nn.Linear(6, 6), nn.ReLU(), nn.Linear(6, 10)).cuda()
net[2] = nn.Linear(6, 3)
---
net(torch.ones(2, 6, device='cuda'))
"""),
    ("module_added_after_move", "layer", """
layers = nn.ModuleList([nn.Linear(3, 3)]).cuda()
layers.append(nn.Linear(3, 3))
---
x = torch.ones(2, 3, device='cuda')
for layer in layers:
    x = layer(x)
"""),
    ("module_added_after_move", "net.fc", """
net = nn.Sequential(nn.Linear(3, 3))
net.add_module('fc', nn.Linear(3, 2))
net.cuda()
---
setattr(net, 'fc', nn.Linear(3, 4))
---
net(torch.ones(2, 3, device='cuda'))
"""),
]  # fmt: skip


def _names() -> list[str]:
    seen: dict[str, int] = {}
    names = []
    for cause, _, _ in MISTAKES:
        seen[cause] = seen.get(cause, 0) + 1
        names.append(f"{cause}-{seen[cause]}")
    return names


@pytest.mark.parametrize(("cause", "culprit", "cells"), MISTAKES, ids=_names())
def test_cause(cause: str, culprit: str, cells: str, notebook: Notebook, tmp_path, monkeypatch) -> None:  # type: ignore[no-untyped-def]
    monkeypatch.chdir(tmp_path)
    if cause == "ddp_wrong_device":
        monkeypatch.setenv("LOCAL_RANK", "1")
    notebook.run(*re.split(r"^---\n", cells, flags=re.MULTILINE))
    finding = notebook.finding()
    named = finding.stray.expression if finding.stray is not None else ""
    assert (finding.cause, named) == (cause, culprit)


def test_a_reason_points_at_the_line_that_did_it(notebook: Notebook) -> None:
    notebook.run("net = nn.Linear(4, 2).to(DEV)", "net.to('cpu')", "net(torch.ones(3, 4, device=DEV))")
    finding = notebook.finding()
    assert finding.told is not None
    assert finding.told.source.segment(finding.told.node) == "net.to('cpu')"


def test_a_move_thrown_away_is_the_line_to_show(notebook: Notebook) -> None:
    notebook.run("net, x = nn.Linear(4, 2).to(DEV), torch.ones(3, 4)", "for _ in range(2):\n    x.to(DEV)\n    net(x)")
    finding = notebook.finding()
    assert finding.told is not None
    assert finding.told.source.segment(finding.told.node) == "x.to(DEV)"


# Raised in replicas: virtual cards raise none of them in a shell.
ELSEWHERE = {"dp_replica_state", "unknown"}


def test_two_cards_that_are_meant_are_no_constant_out_of_place(notebook: Notebook) -> None:
    """A pipeline names both of its cards, or keeps parts of one model on either."""
    notebook.run(
        "first, second = nn.Linear(3, 3).to('cuda:0'), nn.Linear(3, 2).to('cuda:1')",
        "second(first(torch.ones(2, 3, device='cuda:0')))",
    )
    assert notebook.finding().cause == "model_split_multi_gpu"


def test_a_process_of_its_own_has_no_card_of_its_own(notebook: Notebook) -> None:
    notebook.run("net = nn.Linear(3, 2).to(DEV2)", "x = torch.ones(4, 3).cuda()\nnet(x)")
    assert notebook.finding().cause == "hardcoded_device"


def test_every_class_has_two_notebooks() -> None:
    counted = {cause: sum(1 for other, _, _ in MISTAKES if other == cause) for cause in EXPLANATIONS}
    assert {cause for cause, n in counted.items() if n < 2} == ELSEWHERE


def test_a_layer_is_shown_where_a_cell_has_put_it(notebook: Notebook) -> None:
    notebook.run(
        "net = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 2)).to(DEV)",
        "net[1] = nn.Sequential(net[1], nn.Linear(2, 2))",
        "net(torch.ones(2, 3, device=DEV))",
    )
    finding = notebook.finding()
    assert finding.origin is not None
    assert finding.origin.site.source.segment(finding.origin.site.node).startswith("net[1] = ")
