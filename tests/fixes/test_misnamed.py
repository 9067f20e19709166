"""Devices under names that PyTorch does not know: written as PyTorch has them, and nothing else is touched."""

from __future__ import annotations

import pytest
from mended import IMPORTS, Notebook, check_first_fix

Kinds = dict[str, tuple[str, str]]  # name: what the first fix adds, cells separated by "# %%"

NAMES: Kinds = {
    "gpu_in_a_variable": (
        'where = "cuda" if torch.cuda.is_available() else "cpu"',
        """
where = "gpu"
ready = torch.zeros(2, device="cuda" if DEV != "cpu" else "cpu")
# %%
net = nn.Linear(3, 2)
# %%
out = net.to(where)(torch.ones(2, 3).to(where))
""",
    ),
    "a_number_in_a_config": (
        'cfg = dict(lr=0.1, device="cuda:1" if torch.cuda.is_available() else "cpu")',
        """
cfg = dict(lr=0.1, device="gpu:1")
# %%
def start(cfg): return torch.ones(3, device=cfg["device"])
# %%
out = start(cfg)
""",
    ),
    "without_its_colon": (
        'out = torch.ones(3).to("cuda:0" if torch.cuda.is_available() else "cpu")',
        """
kept = torch.zeros(3, device=DEV)
# %%
out = torch.ones(3).to("cuda0")
""",
    ),
    "in_capitals_as_a_default": (
        'def made(n, device=("cuda" if torch.cuda.is_available() else "cpu")):',
        """
kept = torch.zeros(3, device=DEV)
def made(n, device="CUDA"):
    return torch.ones(n, device=device)
# %%
out = made(3)
""",
    ),
}


@pytest.mark.parametrize("name", NAMES)
def test_first_fix_writes_the_name(name: str) -> None:
    adds, cells = NAMES[name]
    found = check_first_fix(Notebook(name, tuple((IMPORTS + cells).split("# %%\n")), adds))
    assert len(found.fixes[0].edits) == 1
    assert "this machine" not in found.explanation
