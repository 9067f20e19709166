"""Generators that are made far from where they draw, and loaders and samplers under a default device."""

from __future__ import annotations

import pytest
import test_first_fix as first
from test_first_fix import IMPORTS, Notebook

Kinds = dict[str, tuple[str, str]]  # name: what the first fix adds, cells separated by "# %%"

UNDER_A_DEFAULT: Kinds = {
    "seeded_by_a_function_for_a_loader_in_a_dict": (
        "    g = torch.Generator(device=torch.get_default_device())",
        """
from torch.utils.data import DataLoader, TensorDataset
torch.set_default_device(DEV)
def seeded(n):
    g = torch.Generator()
    g.manual_seed(n)
    return g
def loaders(x):
    g = seeded(3)
    return {"train": DataLoader(TensorDataset(x), 2, shuffle=True, generator=g)}
# %%
made = loaders(torch.arange(6.0))
# %%
out = torch.stack([x for x, in made["train"]])
""",
    ),
    "random_split_without_a_generator": (
        "        generator=torch.Generator(device=torch.get_default_device()),",
        """
from torch.utils.data import random_split
torch.set_default_device(DEV)
data = torch.arange(10)
# %%
def parts(ds):
    return random_split(
        ds,
        [7, 3],
    )
train, valid = parts(data)
out = torch.tensor(sorted([*train.indices, *valid.indices]))
""",
    ),
    "random_split_with_a_host_generator": (
        "gen = torch.Generator(device=torch.get_default_device()).manual_seed(1)",
        """
from torch.utils.data import random_split
torch.set_default_device(DEV)
gen = torch.Generator().manual_seed(1)
# %%
train, valid = random_split(torch.arange(10), [7, 3], generator=gen)
out = torch.tensor([*train.indices, *valid.indices])
""",
    ),
    "a_sampler_that_draws": (
        "pick = RandomSampler(xs, num_samples=4, generator=torch.Generator(device=torch.get_default_device()))",
        """
from torch.utils.data import RandomSampler
torch.set_default_device(DEV)
xs = list(range(6))
pick = RandomSampler(xs, num_samples=4)
# %%
order = list(pick)
out = torch.tensor(len(order))
""",
    ),
}

MADE_ELSEWHERE: Kinds = {
    "handed_to_a_module_by_a_generator_function": (
        "        yield torch.Generator(device=DEV).manual_seed(seed)",
        """
def streams(seed):
    while True:
        seed += 1
        yield torch.Generator().manual_seed(seed)
# %%
class Noise(nn.Module):
    def __init__(self, rng):
        super().__init__()
        self.rng = rng
    def forward(self, x):
        keep = torch.empty(3, device=x.device)
        return x * keep.bernoulli_(0.5, generator=self.rng)
each = streams(5)
net = nn.Sequential(nn.Identity(), Noise(next(each))).to(DEV)
# %%
out = net(torch.ones(2, 3, device=DEV))
""",
    ),
    "made_in_init": (
        "        self.g = torch.Generator(device=DEV)",
        """
class Jitter:
    def __init__(self, seed):
        self.g = torch.Generator()
        self.g.manual_seed(seed)
    def __call__(self, x):
        return x + torch.randn(x.shape, device=x.device, generator=self.g)
jitter = Jitter(3)
# %%
out = jitter(torch.ones(2, 3, device=DEV))
""",
    ),
    "one_of_several_by_purpose": (
        "train, valid = random_split(range(10), [7, 3], "
        'generator=torch.Generator().manual_seed(rngs["split"].initial_seed()))',
        """
from torch.utils.data import random_split
class Rngs(dict):
    def __init__(self, device, seed):
        super().__init__()
        self.device, self.seed = device, seed
def rng(device, seed):
    return torch.Generator(device=device).manual_seed(seed)
rngs = {name: rng(DEV, 3 + k) for k, name in enumerate(["init", "split"])}
# %%
w = torch.empty(3, device=DEV).normal_(generator=rngs["init"])
# %%
train, valid = random_split(range(10), [7, 3], generator=rngs["split"])
out = torch.tensor([*train.indices, *valid.indices]) * w.sum().item()
""",
    ),
}

ALL = [
    Notebook(name, tuple((IMPORTS + cells).split("# %%\n")), adds)
    for kinds in (UNDER_A_DEFAULT, MADE_ELSEWHERE)
    for name, (adds, cells) in kinds.items()
]


@pytest.mark.parametrize("case", ALL, ids=lambda case: case.name)
def test_first_fix_of_generators(case: Notebook) -> None:
    first.test_first_fix(case)
