"""What has to stay on the host and comes out of something larger: a checkpoint, a batch, an object's attribute."""

from __future__ import annotations

import pytest
from mended import IMPORTS, Notebook, check_first_fix

NOTEBOOKS = [
    Notebook(
        "state_of_the_generator_in_a_checkpoint",
        (
            IMPORTS
            + "import os, tempfile\npath = os.path.join(tempfile.mkdtemp(), 'a.pt')\nnet = nn.Linear(2, 2).to(DEV)",
            "torch.save({'net': net.state_dict(), 'seeds': {'host': torch.get_rng_state()}}, path)",
            "def resume(saved):\n    net.load_state_dict(saved['net'])\n    seeds = saved['seeds']\n"
            "    torch.random.set_rng_state(seeds['host'])",
            "resume(torch.load(path, map_location=DEV))\nout = torch.rand(2)",
        ),
        "    torch.random.set_rng_state(seeds['host'].cpu())",
    ),
    Notebook(
        "two_generators_of_an_object",
        (
            IMPORTS + "from types import SimpleNamespace\n"
            "class Draws:\n    def __init__(self):\n"
            "        self.left, self.right = torch.Generator(), torch.Generator()\n"
            "    def restore(self, kept):\n        self.left.set_state(kept.left)\n"
            "        self.right.set_state(kept.right)\n        return self",
            "first = Draws()\n"
            "kept = SimpleNamespace(left=first.left.get_state().to(DEV), right=first.right.get_state().to(DEV))",
            "draws = Draws().restore(kept)\nout = torch.rand(2, generator=draws.right)",
        ),
        "        self.right.set_state(kept.right.cpu())",
    ),
    Notebook(
        "cuts_in_a_batch",
        (
            IMPORTS + "batch = {'words': torch.arange(6.0, device=DEV), 'cuts': torch.tensor([2, 5], device=DEV)}",
            "def parts(batch):\n    return torch.tensor_split(batch['words'], batch['cuts'])",
            "out = parts(batch)[1]",
        ),
        "    return torch.tensor_split(batch['words'], batch['cuts'].cpu())",
    ),
]


@pytest.mark.parametrize("case", NOTEBOOKS, ids=lambda case: case.name)
def test_is_brought_home_where_it_is_given(case: Notebook) -> None:
    assert check_first_fix(case).cause == "must_be_cpu"
