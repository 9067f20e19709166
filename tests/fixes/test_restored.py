"""Objects that restore themselves from a checkpoint keep their tensors where they were, not where the file was read."""

from __future__ import annotations

import pytest
from mended import IMPORTS, Notebook, check_first_fix

LOADED = "import io\nkept = io.BytesIO()\ntorch.save(stats.state_dict(), kept); kept.seek(0)\n"
NOTEBOOKS = [
    Notebook(
        "all_of_its_dict",
        (
            IMPORTS
            + "class Stats:\n    def __init__(self, n, where):\n        self.mean = torch.zeros(n, device=where)\n"
            "        self.std = torch.ones(n, device=where)\n        self.seen = 0\n"
            "    def update(self, x):\n        self.mean, self.std = x.mean(0), x.std(0)\n        self.seen += len(x)\n"
            "    def state_dict(self):\n        return dict(self.__dict__)\n"
            "    def load_state_dict(self, d):\n        self.__dict__.update(d)\n"
            "    def __call__(self, x):\n        return (x - self.mean) / self.std",
            "x = torch.arange(6.0).view(3, 2).to(DEV)\nstats = Stats(2, DEV)\nstats.update(x)\n"
            + LOADED
            + "stats.load_state_dict(torch.load(kept, map_location='cpu'))",
            "out = stats(x)",
        ),
        "        self.__dict__.update({k: v.to(self.mean.device) if torch.is_tensor(v) else v for k, v in d.items()})",
    ),
    Notebook(
        "name_by_name",
        (
            IMPORTS
            + "class Scaler:\n    def __init__(self, n, where):\n        self.low = torch.zeros(n, device=where)\n"
            "        self.high = torch.ones(n, device=where)\n"
            "    def fit(self, x):\n        self.low = x.amin(0)\n        self.high = x.amax(0)\n        return self\n"
            "    def state_dict(self):\n        return {'low': self.low, 'high': self.high}\n"
            "    def load_state_dict(self, saved):\n        for name, t in saved.items():\n"
            "            setattr(self, name, t)",
            "x = torch.arange(6.0).view(3, 2).to(DEV)\nstats = Scaler(2, DEV).fit(x)\n"
            + LOADED
            + "stats.load_state_dict(torch.load(kept, map_location='cpu'))",
            "out = (x - stats.low) / (stats.high - stats.low)",
        ),
        "            setattr(self, name, t.to(getattr(self, name).device))",
    ),
]


@pytest.mark.parametrize("case", NOTEBOOKS, ids=lambda case: case.name)
def test_stays_where_it_was(case: Notebook) -> None:
    assert "load_state_dict()" in check_first_fix(case).fixes[0].title
