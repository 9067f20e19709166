"""A loop that moves each item under its own name changes nothing: the first fix writes it back where it came from."""

from __future__ import annotations

import pytest
from mended import IMPORTS, Notebook, check_first_fix

NET = IMPORTS + "net = nn.Linear(2, 2).to(DEV)\n"
NOTEBOOKS = [
    Notebook(
        "items_of_a_dict",
        (
            NET + "def ready(feed, where):\n    for key, part in feed.items():\n        if torch.is_tensor(part):\n"
            "            part = part.to(where)\n    return feed",
            "feed = ready({'x': torch.ones(3, 2), 'scale': 2.0}, DEV)\nout = net(feed['x']) * feed['scale']",
        ),
        "            feed[key] = part.to(where)",
    ),
    Notebook(
        "values_of_a_dict",
        (
            NET
            + "class Feeder:\n    def __init__(self):\n        self.kept = dict(x=torch.ones(3, 2), m=torch.ones(2))\n"
            "    def onto(self, where):\n        for t in self.kept.values():\n            t = t.to(where)\n"
            "        return self.kept",
            "b = Feeder().onto(DEV)\nout = net(b['x']) * b['m']",
        ),
        "            self.kept[key] = t.to(where)",
    ),
    Notebook(
        "a_list_in_a_cell",
        (
            NET
            + "views = [torch.ones(3, 2), torch.zeros(3, 2)]\nfor v in views:\n    v = v.to(DEV, non_blocking=True)",
            "out = sum(net(v) for v in views)",
        ),
        "    views[i] = v.to(DEV, non_blocking=True)",
    ),
    Notebook(
        "keys_of_a_dict",
        (
            NET
            + "def ready(sample):\n    for name in sample:\n        moved = sample[name].to(DEV)\n    return sample",
            "s = ready({'x': torch.ones(3, 2)})\nout = net(s['x'])",
        ),
        "        sample[name] = sample[name].to(DEV)",
    ),
]


@pytest.mark.parametrize("case", NOTEBOOKS, ids=lambda case: case.name)
def test_is_written_back(case: Notebook) -> None:
    assert "back into" in check_first_fix(case).fixes[0].title


def test_is_left_alone_where_the_loop_uses_what_it_moved() -> None:
    case = Notebook(
        "used_at_once",
        (
            NET + "views = [torch.ones(3, 2), torch.zeros(3, 2)]\nsums = []\nfor v in views:\n"
            "    v = v.to(DEV)\n    sums.append(net(v).sum())",
            "out = sum(net(v) for v in views)",
        ),
        "",
    )
    assert not any("back into" in fix.title for fix in check_first_fix(case).fixes)
