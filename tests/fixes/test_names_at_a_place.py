"""The code of a fix uses only names that are bound where it stands; modules of a list or dict are moved one and all."""

from __future__ import annotations

import pytest
import test_first_fix as first
from test_first_fix import IMPORTS, Notebook

Kinds = dict[str, tuple[str, str]]  # name: what the first fix adds, cells separated by "# %%"

MODELS: Kinds = {
    "one_model_a_fold": (
        "    bag[fold].to(DEV)",
        """
bag = [nn.Linear(3, 1).to(DEV)]
for seed in range(2): bag.append(nn.Linear(3, 1))
def score(net, x):
    return net(x).sum()
# %%
out = 0
for fold in range(len(bag)):
    out = out + score(bag[fold], torch.ones(2, 3, device=DEV))
""",
    ),
    "a_loop_variable_of_an_earlier_cell": (
        "    nets[name] = nn.Linear(3, 2).to(DEV)",
        """
nets = {"a": nn.Linear(3, 2).to(DEV)}
for name in "bc":
    nets[name] = nn.Linear(3, 2)
# %%
def run(net, x): return net(x)
# %%
out = 0
for name in sorted(nets):
    out = out + run(nets[name], torch.ones(2, 3, device=DEV))
""",
    ),
    "members_handed_out_by_two_loops": (
        "",
        """
heads = {"a": [nn.Linear(3, 2), nn.Linear(3, 2)], "b": [nn.Linear(3, 2)]}
# %%
x = torch.ones(2, 3, device=DEV)
out = 0
for task in heads:
    for i in range(len(heads[task])):
        out = out + heads[task][i](x)
""",
    ),
}

ALL = [Notebook(name, tuple((IMPORTS + cells).split("# %%\n")), adds) for name, (adds, cells) in MODELS.items()]


@pytest.mark.parametrize("case", ALL, ids=lambda case: case.name)
def test_first_fix_names_what_is_bound(case: Notebook) -> None:
    first.test_first_fix(case)
