"""What never reached its place: weights under other names, tensors in workers, methods kept by a replica."""

from __future__ import annotations

import pytest
import test_first_fix as first
from test_first_fix import IMPORTS, Notebook

Kinds = dict[str, tuple[str, str]]  # name: what the first fix adds, cells separated by "# %%"

OTHER_NAMES: Kinds = {
    "saved_by_data_parallel": (
        'net.load_state_dict({k.removeprefix("module."): v for k, v in saved.items()}, strict=False, assign=True)',
        """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(3, 3), nn.Linear(3, 2)
    def forward(self, x): return self.b(self.a(x))
saved = {f"module.{k}": v for k, v in Net().state_dict().items()}
# %%
with torch.device("meta"):
    net = Net()
net.load_state_dict(saved, strict=False, assign=True)
# %%
net = net.to(DEV)
out = net(torch.ones(2, 3, device=DEV))
""",
    ),
    "a_head_of_another_name": (
        "    net.load_state_dict("
        '{k.replace(".kernel", ".weight"): v for k, v in file["weights"].items()}, strict=False, assign=True)',
        """
def build(): return nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 2))
def saved():
    found = build().state_dict()
    found["1.kernel"] = found.pop("1.weight")
    return {"weights": found}
file = saved()
# %%
def load(file):
    with torch.device("meta"):
        net = build()
    net.load_state_dict(file["weights"], strict=False, assign=True)
    return net
net = load(file)
# %%
net.to(DEV)
out = net(torch.ones(2, 3, device=DEV))
""",
    ),
    "names_of_tensorflow_in_a_file": (
        "    net.load_state_dict("
        '{k.replace(".gamma", ".weight").replace(".beta", ".bias"): v for k, v in torch.load(file).items()}, '
        "strict=False, assign=True)",
        """
import io
def build(): return nn.Sequential(nn.Linear(3, 3), nn.LayerNorm(3))
def export():
    found = build().state_dict()
    found["1.gamma"], found["1.beta"] = found.pop("1.weight") * 2, found.pop("1.bias")
    file = io.BytesIO(); torch.save(found, file); file.seek(0)
    return file
# %%
def load(file):
    with torch.device("meta"):
        net = build()
    net.load_state_dict(torch.load(file), strict=False, assign=True)
    return net
# %%
net = load(export())
net.to(DEV)
out = net(torch.ones(2, 3, device=DEV))
""",
    ),
}

IN_WORKERS: Kinds = {
    "a_table_on_the_card": (
        "loader = DataLoader(rows, batch_size=2, num_workers=0, persistent_workers=False, prefetch_factor=None)",
        """
from torch.utils.data import DataLoader, Dataset
class Rows(Dataset):
    def __init__(self, table): self.table = table
    def __len__(self): return len(self.table)
    def __getitem__(self, i): return self.table[i] * 2
rows = Rows(torch.arange(12.0).view(4, 3).to(DEV))
# %%
loader = DataLoader(rows, batch_size=2, num_workers=1, persistent_workers=True, prefetch_factor=2)
# %%
out = torch.cat(list(loader))
""",
    ),
    "a_transform_that_moves": (
        "    return DataLoader(ds, batch_size=2, num_workers=0)",
        """
from torch.utils.data import DataLoader, Dataset
class ToDevice:
    def __init__(self, device): self.device = device
    def __call__(self, x): return x.to(self.device)
class Steps:
    def __init__(self, *steps): self.steps = steps
    def __call__(self, x):
        for step in self.steps: x = step(x)
        return x
class Points(Dataset):
    def __init__(self, xs, steps): self.xs, self.steps = xs, steps
    def __len__(self): return len(self.xs)
    def __getitem__(self, i): return self.steps(self.xs[i])
# %%
def loaded(ds):
    return DataLoader(ds, batch_size=2, num_workers=2)
loader = loaded(Points(torch.arange(12.0).view(4, 3), Steps(torch.relu, ToDevice(DEV))))
# %%
seen = []
for x in loader: seen.append(x)
out = torch.cat(seen)
""",
    ),
}

REPLICAS: Kinds = {
    "methods_in_a_list": (
        '        self.steps = ["first", "second"]',
        """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(3, 3), nn.Linear(3, 2)
        self.steps = [self.first, self.second]
    def first(self, x): return self.a(x).relu()
    def second(self, x): return self.b(x)
    def forward(self, x):
        for step in self.steps: x = step(x)
        return x
net = nn.DataParallel(Net().to(DEV))
# %%
out = net(torch.ones(4, 3, device=DEV))
""",
    ),
    "methods_by_name": (
        '        self.by_task = {"cut": "cut", "keep": "keep"}',
        """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(3, 3), nn.Linear(3, 2)
        self.by_task = {"cut": self.cut, "keep": self.keep}
    def cut(self, x): return self.b(x)
    def keep(self, x): return self.a(x)
    def forward(self, x, task="cut"):
        return self.by_task[task](x)
core = Net().to(DEV)
# %%
net = nn.DataParallel(core, device_ids=[0, 1])
# %%
out = net(torch.ones(4, 3, device=DEV))
""",
    ),
}

ALL = [
    Notebook(name, tuple((IMPORTS + cells).split("# %%\n")), adds)
    for kinds in (OTHER_NAMES, IN_WORKERS, REPLICAS)
    for name, (adds, cells) in kinds.items()
]


@pytest.mark.parametrize("case", ALL, ids=lambda case: case.name)
def test_first_fix_of_what_was_left_behind(case: Notebook) -> None:
    first.test_first_fix(case)
