"""Helpers that go through a batch and know too few kinds of containers are taught all that the batch is made of."""

from __future__ import annotations

import pytest
from mended import IMPORTS, Notebook, check_first_fix

NOTEBOOKS = [
    Notebook(
        "tuples_behind_an_else",
        (
            IMPORTS + "def put(thing, where):\n    if isinstance(thing, torch.Tensor):\n"
            "        return thing.to(where)\n    elif isinstance(thing, dict):\n"
            "        return {name: put(part, where) for name, part in thing.items()}\n    else:\n        return thing",
            "net = nn.Linear(2, 2).to(DEV)\nx = torch.ones(3, 2)\nbatch = {'x': x, 'views': (x, x + 1)}",
            "batch = put(batch, DEV)\nout = net(batch['x']) + batch['views'][0] + batch['views'][1]",
        ),
        "            return type(thing)(put(v, where) for v in thing)",
    ),
    Notebook(
        "two_kinds_at_once",
        (
            IMPORTS
            + "from dataclasses import dataclass\n@dataclass\nclass Target:\n    mask: torch.Tensor\n    name: str\n",
            "def go(o, dev):\n    if torch.is_tensor(o):\n        return o.to(dev, non_blocking=True)\n"
            "    if isinstance(o, dict):\n        return {k: go(v, dev) for k, v in o.items()}\n    return o",
            "net = nn.Linear(2, 2).to(DEV)\nx = torch.ones(3, 2)\nbatch = {'x': x, 'targets': [Target(x + 1, 'a')]}",
            "b = go(batch, DEV)\nout = net(b['x']) * b['targets'][0].mask",
        ),
        "        return dataclasses.replace(o, **{f.name: go(getattr(o, f.name), dev) for f in dataclasses.fields(o)})",
    ),
    Notebook(
        "exactly_a_dict",
        (
            IMPORTS + "from collections import OrderedDict\ndef onto(o, dev):\n"
            "    if type(o) is dict:\n        return {k: onto(v, dev) for k, v in o.items()}\n"
            "    if type(o) in (list, tuple):\n        return [onto(v, dev) for v in o]\n"
            "    return o.to(dev) if torch.is_tensor(o) else o",
            "net = nn.Linear(2, 2).to(DEV)\nsample = [torch.ones(3, 2), OrderedDict(gate=torch.ones(3, 2))]",
            "x, more = onto(sample, DEV)\nout = net(x) * more['gate']",
        ),
        "        return {k: onto(v, dev) for k, v in o.items()}",
    ),
    Notebook(
        "cases_of_a_match",
        (
            IMPORTS + "def shift(o, dev):\n    match o:\n        case torch.Tensor():\n            return o.to(dev)\n"
            "        case {}:\n            return {k: shift(v, dev) for k, v in o.items()}\n"
            "        case list():\n            return [shift(v, dev) for v in o]\n"
            "        case _:\n            return o",
            "net = nn.Linear(2, 2).to(DEV)\nsample = {'x': torch.ones(3, 2), 'pair': (torch.ones(3, 2), 4)}",
            "moved = shift(sample, DEV)\nout = net(moved['x']) * moved['pair'][0]",
        ),
        "                return tuple(shift(v, dev) for v in o)",
    ),
]


@pytest.mark.parametrize("case", NOTEBOOKS, ids=lambda case: case.name)
def test_knows_all_kinds_of_the_batch(case: Notebook) -> None:
    assert " as well" in check_first_fix(case).fixes[0].title
