"""What enters itself in a table when it is defined: after an edit the table is filled anew, and its users are built."""

from __future__ import annotations

import pytest
import test_first_fix as first
from test_first_fix import IMPORTS, Notebook

Kinds = dict[str, tuple[str, str]]  # name: what the first fix adds, cells separated by "# %%"

TABLES: Kinds = {
    "classes_by_a_decorator_with_a_name": (
        "        return x * torch.full((x.size(-1),), 0.5, device=x.device)",
        """
HEADS = {}
def register(name):
    def enter(cls):
        HEADS[name] = cls
        return cls
    return enter
# %%
@register("half")
class Half(nn.Module):
    def forward(self, x):
        return x * torch.full((x.size(-1),), 0.5)
# %%
def build(name): return nn.Sequential(nn.Linear(3, 2), HEADS[name]())
net = build("half").to(DEV)
# %%
out = net(torch.ones(2, 3, device=DEV))
""",
    ),
    "functions_by_a_plain_decorator": (
        "    return (x - torch.ones(2, device=x.device)).abs().mean()",
        """
LOSSES = []
def loss(f):
    LOSSES.append(f)
    return f
# %%
@loss
def near(x):
    return (x - torch.ones(2)).abs().mean()
# %%
class All(nn.Module):
    def __init__(self):
        super().__init__()
        self.parts = list(LOSSES)
    def forward(self, x): return sum(part(x) for part in self.parts)
every = All()
# %%
out = every(torch.ones(2, 2, device=DEV))
""",
    ),
    "no_second_entry_of_a_name": (
        "        return x * torch.ones(3, device=x.device)",
        """
OPS = {}
def op(name):
    def enter(f):
        if name in OPS: raise KeyError(name)
        OPS[name] = f
        return f
    return enter
# %%
@op("twice")
def twice(x): return x * 2
# %%
def scaled(n):
    @op(f"scale{n}")
    def scale(x):
        return x * torch.ones(3)
    return scale
scaled(1)
# %%
out = x = torch.ones(2, 3, device=DEV)
for name, f in OPS.items():
    out = f(out)
""",
    ),
    "an_object_that_registers": (
        "        return x + torch.arange(2.0, device=x.device)",
        """
class Table:
    def __init__(self): self.kinds = {}
    def add(self, cls):
        self.kinds[cls.__name__] = cls
        return cls
TABLE = Table()
# %%
@TABLE.add
class Shift(nn.Module):
    def forward(self, x):
        return x + torch.arange(2.0)
# %%
net = TABLE.kinds["Shift"]()
# %%
out = net(torch.ones(2, 2, device=DEV))
""",
    ),
    "subclasses_that_the_base_hears_of": (
        "        return x + torch.arange(2.0, device=x.device)",
        """
class Head(nn.Module):
    known = {}
    def __init_subclass__(cls, name="", **rest):
        super().__init_subclass__(**rest)
        Head.known[name] = cls
# %%
class Shift(Head, name="shift"):
    def forward(self, x):
        return x + torch.arange(2.0)
# %%
net = Head.known["shift"]()
# %%
out = net(torch.ones(2, 2, device=DEV))
""",
    ),
}

ALL = [Notebook(name, tuple((IMPORTS + cells).split("# %%\n")), adds) for name, (adds, cells) in TABLES.items()]


@pytest.mark.parametrize("case", ALL, ids=lambda case: case.name)
def test_first_fix_of_what_is_registered(case: Notebook) -> None:
    first.test_first_fix(case)
