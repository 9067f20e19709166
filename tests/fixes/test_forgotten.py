"""First fixes for what was forgotten on the way: by helpers that move, by reset(), among siblings, on meta, at home."""

from __future__ import annotations

import pytest
from mended import IMPORTS, Notebook, check_first_fix, corrected, diagnosed, values

import ipydevice

Kinds = dict[str, tuple[str, str]]  # name: what the first fix adds, cells separated by "# %%"

MOVERS: Kinds = {
    "dicts_but_no_lists": (
        "    if isinstance(x, (list, tuple)):",
        """
def ship(x, device):
    if torch.is_tensor(x):
        return x.to(device)
    if isinstance(x, dict):
        return {k: ship(v, device) for k, v in x.items()}
    return x
# %%
net = nn.Linear(3, 2).to(DEV)
batch = ship({"views": [torch.rand(4, 3), torch.rand(4, 3)], "name": "a"}, DEV)
out = net(batch["views"][0]) + net(batch["views"][1])
""",
    ),
    "a_method_that_knows_no_named_tuples": (
        "",
        """
from collections import namedtuple
Pair = namedtuple("Pair", ["left", "right"])
class Runner:
    def __init__(self, net, device):
        self.net, self.device = net.to(device), device
    def move(self, obj, where):
        "to the card"
        if isinstance(obj, torch.Tensor):
            return obj.to(where, non_blocking=True)
        elif isinstance(obj, list):
            return [self.move(o, where) for o in obj]
        return obj
    def step(self, batches):
        total = 0
        for pair in self.move(batches, self.device):
            total = total + self.net(pair.left - pair.right).sum()
        return total
# %%
runner = Runner(nn.Linear(2, 2), DEV)
out = runner.step([Pair(torch.rand(3, 2), torch.rand(3, 2)) for _ in range(2)])
""",
    ),
    "an_object_that_moves_itself": (
        '    if hasattr(v, "to"):',
        """
class Graph:
    def __init__(self, x, index):
        self.x, self.index = x, index
    def to(self, device):
        return Graph(self.x.to(device), self.index.to(device))
def put(v, d):
    if isinstance(v, torch.Tensor):
        return v.to(d)
    if isinstance(v, (list, tuple)):
        return type(v)(put(one, d) for one in v)
    return v
# %%
lin = nn.Linear(3, 3).to(DEV)
graph, y = put((Graph(torch.rand(4, 3), torch.tensor([0, 2, 3, 1])), torch.rand(4, 3)), DEV)
out = lin(graph.x)[graph.index] - y
""",
    ),
    "dataclasses_by_a_name_of_their_own": (
        "    if dataclasses.is_dataclass(o):",
        """
from dataclasses import dataclass
@dataclass
class Sample:
    image: torch.Tensor
    label: torch.Tensor
    path: str = ""
# %%
def to_card(o, card):
    if isinstance(o, torch.Tensor):
        return o.to(card)
    if isinstance(o, list):
        return [to_card(part, card) for part in o]
    return o
# %%
net = nn.Linear(4, 3).to(DEV)
samples = to_card([Sample(torch.rand(2, 4), torch.tensor([0, 1])) for _ in range(2)], DEV)
out = sum(F.cross_entropy(net(s.image), s.label) for s in samples)
""",
    ),
    "moves_thrown_away_in_a_helper": (
        "    x = x.to(DEV)",
        """
def prepare(x, y):
    x.to(DEV)
    y.to(DEV)
    return x, y
# %%
net = nn.Linear(3, 2).to(DEV)
xs, ys = torch.rand(4, 3), torch.tensor([0, 1, 1, 0])
a, b = prepare(xs, ys)
out = F.cross_entropy(net(a), b)
""",
    ),
}

SIBLINGS: Kinds = {
    "keys_in_a_list": (
        'for key in ["ids", "mask", "segments"]:',
        """
net = nn.Embedding(9, 4).to(DEV)
kinds = nn.Embedding(2, 4).to(DEV)
batch = {"ids": torch.tensor([[1, 2]]), "mask": torch.ones(1, 2), "segments": torch.tensor([[0, 1]]), "text": "a b"}
# %%
for key in ["ids", "mask"]:
    batch[key] = batch[key].to(DEV)
out = (net(batch["ids"]) + kinds(batch["segments"])) * batch["mask"][..., None]
""",
    ),
    "a_tuple_of_keys_at_the_top": (
        "KEYS = 'image', 'depth', 'mask'",
        """
KEYS = 'image', 'depth'
def on_card(sample):
    return {**sample, **{k: sample[k].to(DEV) for k in KEYS}}
# %%
conv = nn.Conv2d(2, 1, 1).to(DEV)
def loss(sample):
    x = torch.cat([sample['image'], sample['depth']], 1)
    return (conv(x) * sample['mask']).mean()
# %%
out = loss(on_card({'image': torch.rand(1, 1, 2, 2), 'depth': torch.rand(1, 1, 2, 2), 'mask': torch.ones(1, 1, 2, 2)}))
""",
    ),
    "attributes_of_a_batch": (
        "    batch.w = batch.w.to(DEV)",
        """
from types import SimpleNamespace
net = nn.Linear(3, 1).to(DEV)
data = [SimpleNamespace(x=torch.rand(2, 3), y=torch.rand(2, 1), w=torch.rand(2, 1)) for _ in range(2)]
# %%
out = 0
for batch in data:
    batch.x = batch.x.to(DEV)
    batch.y = batch.y.to(DEV)
    out = out + (batch.w * (net(batch.x) - batch.y) ** 2).mean()
""",
    ),
    "a_generator_that_moves_one_of_two": (
        '        item["weight"] = item["weight"].to(DEV)',
        """
def stream(items):
    for item in items:
        item["x"] = item["x"].to(DEV)
        yield item
# %%
net = nn.Linear(2, 1).to(DEV)
def total(items):
    return sum((net(b["x"]) * b["weight"]).sum() for b in stream(items))
# %%
out = total([{"x": torch.rand(3, 2), "weight": torch.rand(3, 1), "n": 3} for _ in range(2)])
""",
    ),
}

RESETS: Kinds = {
    "a_metric_built_on_the_device": (
        "        self.hits = torch.zeros(self.n, device=self.hits.device)",
        """
class PerClass:
    def __init__(self, n, device):
        self.n = n
        self.hits = torch.zeros(n, device=device)
    def reset(self):
        self.hits = torch.zeros(self.n)
    def add(self, pred):
        self.hits += F.one_hot(pred, self.n).sum(0)
meter = PerClass(3, DEV)
meter.add(torch.tensor([0, 2], device=DEV))
# %%
meter.reset()
meter.add(torch.tensor([0, 1, 1], device=DEV))
out = meter.hits / 3
""",
    ),
    "buffers_that_a_module_makes_anew": (
        "",
        """
class Running(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("total", torch.zeros(2))
        self.register_buffer("count", torch.zeros(()))
    def clear(self):
        self.total, self.count = torch.zeros(2), torch.zeros(())
    def forward(self, x):
        self.total = self.total + x.sum(0)
        self.count = self.count + len(x)
        return self.total / self.count
running = Running().to(DEV)
# %%
running.clear()
out = running(torch.rand(4, 2).to(DEV))
""",
    ),
    "a_buffer_that_a_module_makes_anew": (
        "        self.total = torch.zeros(2, device=self.total.device)",
        """
class Running(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("total", torch.zeros(2))
    def clear(self):
        self.total = torch.zeros(2)
    def forward(self, x):
        self.total = self.total + x.sum(0)
        return self.total
running = Running().to(DEV)
first = running(torch.rand(4, 2).to(DEV))
# %%
running.clear()
out = running(torch.rand(4, 2).to(DEV))
""",
    ),
}

LATE: Kinds = {
    "a_head_replaced_by_a_method": (
        "        self.fc = nn.Linear(self.width, n).to(self.stem.weight.device)",
        """
class Net(nn.Module):
    def __init__(self, width=4):
        super().__init__()
        self.width = width
        self.stem, self.fc = nn.Linear(3, width), nn.Linear(width, 2)
    def for_classes(self, n):
        self.fc = nn.Linear(self.width, n)
        return self
    def forward(self, x):
        return self.fc(self.stem(x).relu())
# %%
net = Net()
net.to(DEV)
before = net(torch.rand(2, 3).to(DEV))
# %%
net.for_classes(5)
out = net(torch.rand(2, 3).to(DEV))
""",
    ),
    "blocks_appended_later": (
        "",
        """
class Growing(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(3, 3)
        self.blocks = nn.ModuleList()
    def grow(self):
        self.blocks.append(nn.Linear(3, 3))
    def forward(self, x):
        x = self.first(x)
        for block in self.blocks:
            x = block(x)
        return x
# %%
net = Growing().to(DEV)
x = torch.rand(2, 3).to(DEV)
small = net(x)
# %%
net.grow()
out = net(x)
""",
    ),
    "an_adapter_made_for_each_name_in_forward": (
        "            self.adapters[name] = nn.Linear(3, 3).to(self.body.weight.device)",
        """
class Multi(nn.Module):
    def __init__(self, names):
        super().__init__()
        self.body = nn.Linear(3, 3)
        self.adapters = nn.ModuleDict()
        for name in names:
            self.adapter(name)
    def adapter(self, name):
        if name not in self.adapters:
            self.adapters[name] = nn.Linear(3, 3)
        return self.adapters[name]
    def forward(self, x, name):
        return self.body(x) + self.adapter(name)(x)
# %%
multi = Multi(["a"]).to(DEV)
out = multi(torch.rand(2, 3).to(DEV), "a") + multi(torch.rand(2, 3).to(DEV), "b")
""",
    ),
    "a_pipeline_that_saving_brought_home": (
        "pipe = pipe.to(DEV)",
        """
class Pipe:
    def __init__(self):
        self.encoder, self.decoder = nn.Linear(3, 2), nn.Linear(2, 3)
    def to(self, device):
        self.encoder.to(device)
        self.decoder.to(device)
        return self
    def __call__(self, x):
        return self.decoder(self.encoder(x))
def keep(pipe, store):
    pipe.to("cpu")
    store["encoder"] = pipe.encoder.state_dict()
# %%
pipe, store = Pipe().to(DEV), {}
x = torch.rand(2, 3).to(DEV)
first = pipe(x)
keep(pipe, store)
# %%
out = pipe(x)
""",
    ),
}

META: Kinds = {
    "two_of_three_shards": (
        "",
        """
full = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 4), nn.Linear(4, 2)).state_dict()
shards = {n: {k: v for k, v in full.items() if k.startswith(n)} for n in ("0.", "2.", "3.")}
del full
# %%
with torch.device("meta"):
    net = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 4), nn.Linear(4, 2))
net.load_state_dict({k: v.to(DEV) for k, v in shards["0."].items()}, strict=False, assign=True)
# %%
out = net(torch.rand(2, 3).to(DEV))
""",
    ),
    "a_checkpoint_with_more_than_was_taken": (
        "",
        """
class Two(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.head = nn.Linear(3, 4), nn.Linear(4, 2)
    def forward(self, x):
        return self.head(self.body(x))
ckpt = {"epoch": 3, "model": Two().state_dict()}
# %%
with torch.device("meta"):
    two = Two()
body = {k: v.to(DEV) for k, v in ckpt["model"].items() if k.startswith("body")}
two.load_state_dict(body, strict=False, assign=True)
# %%
out = two(torch.rand(2, 3).to(DEV))
""",
    ),
    "a_mask_that_no_checkpoint_holds": (
        "        with torch.device(device):",
        """
class Causal(nn.Module):
    def __init__(self, n=4):
        super().__init__()
        self.proj = nn.Linear(n, n)
        self.register_buffer("mask", torch.tril(torch.ones(n, n)), persistent=False)
    def forward(self, x):
        return self.proj(x) * self.mask
    @classmethod
    def load(cls, weights, device):
        with torch.device("meta"):
            model = cls()
        model.load_state_dict({k: v.to(device) for k, v in weights.items()}, assign=True)
        return model
weights = Causal().state_dict()
# %%
causal = Causal.load(weights, DEV)
# %%
out = causal(torch.rand(4, 4).to(DEV))
""",
    ),
}

RECORDS: Kinds = {
    "a_named_tuple_in_a_module": (
        "",
        """
from typing import NamedTuple
class Affine(NamedTuple):
    shift: torch.Tensor
    scale: torch.Tensor
class Flow(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Linear(2, 2)
        self.affine = Affine(torch.zeros(2), torch.full((2,), 2.0))
    def forward(self, x):
        z = self.net(x) - self.affine.shift
        return z / self.affine.scale
# %%
flow = Flow().to(DEV)
out = flow(torch.rand(3, 2).to(DEV))
""",
    ),
    "a_frozen_dataclass_at_the_call": (
        "",
        """
from dataclasses import dataclass
@dataclass(frozen=True)
class Stats:
    mean: torch.Tensor
    std: torch.Tensor
def normalise(x, stats):
    return (x - stats.mean) / stats.std
# %%
stats = Stats(torch.tensor([0.1, 0.2]), torch.tensor([1.0, 2.0]))
# %%
out = normalise(torch.rand(3, 2).to(DEV), stats)
""",
    ),
    "keywords_of_a_partial": (
        "",
        """
from functools import partial
def focal(logits, target, alpha, gamma):
    p = logits.softmax(-1).gather(1, target[:, None]).squeeze(1)
    return (-alpha * (1 - p) ** gamma * p.log()).mean()
# %%
criterion = partial(focal, alpha=torch.rand(4), gamma=torch.full((4,), 2.0))
net = nn.Linear(3, 2).to(DEV)
# %%
out = criterion(net(torch.rand(4, 3).to(DEV)), torch.tensor([0, 1, 1, 0], device=DEV))
""",
    ),
    "two_results_of_a_host_function": (
        "",
        """
import numpy as np
def match(cost):
    table = cost.detach().cpu().numpy()
    best = table.argmin(1)
    return torch.from_numpy(best), torch.from_numpy(np.exp(-table.min(1)))
# %%
a = nn.Parameter(torch.rand(3, 2, device=DEV))
b = torch.rand(4, 2).to(DEV)
def loss():
    index, weight = match(torch.cdist(a, b))
    return ((a - b[index]).abs().sum(1) * weight).sum()
# %%
out = loss()
""",
    ),
}

# No device of the notebook's own: not comparable with the host.
CARDS: Kinds = {
    "a_worker_beyond_the_cards": (
        "",
        """
def card_of(worker):
    return torch.device(f"cuda:{worker}")
# %%
nets = [nn.Linear(2, 2) for _ in range(3)]
for worker, net in enumerate(nets):
    net.to(card_of(worker))
out = nets[2].weight.detach().sum()
""",
    ),
    "cards_in_a_list": (
        'CARDS = ["cuda:1", "cuda:0", "cuda:1"]',
        """
CARDS = ["cuda:1", "cuda:2", "cuda:3"]
# %%
parts = [torch.ones(2, device=card) for card in CARDS]
out = sum(p.cpu() for p in parts)
""",
    ),
    "a_number_handed_to_cuda": (
        "x = torch.ones(3).cuda((offset + 1) % torch.cuda.device_count())",
        """
offset = 4
# %%
x = torch.ones(3).cuda(offset + 1)
out = x * 2
""",
    ),
}

ALL = [
    Notebook(name, tuple((IMPORTS + cells).split("# %%\n")), adds)
    for kinds in (MOVERS, SIBLINGS, RESETS, LATE, META, RECORDS)
    for name, (adds, cells) in kinds.items()
]


@pytest.mark.parametrize("case", ALL, ids=lambda case: case.name)
def test_first_fix_of_what_was_forgotten(case: Notebook) -> None:
    check_first_fix(case)


@pytest.mark.parametrize("name", CARDS)
def test_cards_that_are_not_there(name: str) -> None:
    adds, text = CARDS[name]
    cells = (IMPORTS + text).split("# %%\n")
    found, problem, _ = diagnosed(cells)
    assert not problem, problem
    lines = [line for edit in found.fixes[0].edits for line in edit.after.splitlines()]
    assert adds in (*lines, ""), lines
    with ipydevice.virtual_gpus(2):
        values(corrected(cells, found.fixes[0]), "cuda:0", "out")
