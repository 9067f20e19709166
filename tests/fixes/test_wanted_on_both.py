"""What is also passed where only the host will do is moved where the card wants it, and nowhere above."""

from __future__ import annotations

import pytest
from mended import IMPORTS, Notebook, check_first_fix

_PACKING = (
    IMPORTS + "from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence\nclass Net(nn.Module):\n"
    "    def __init__(self):\n        super().__init__()\n        self.rnn = nn.GRU(3, 2, batch_first=True)\n"
    "    def forward(self, x, sizes):\n"
    "        packed = pack_padded_sequence(x, sizes, batch_first=True, enforce_sorted=False)\n"
    "        return pad_packed_sequence(self.rnn(packed)[0], batch_first=True)[0]\n"
    "def last(h, n):\n    at = (n - 1).view(-1, 1, 1).expand(-1, 1, 2)\n    return h.gather(1, at).squeeze(1)\n"
    "net = Net().to(DEV)\nx = torch.ones(2, 4, 3, device=DEV)"
)
_COUNTING = (
    IMPORTS + "import numpy as np\ndef shares(weights):\n    return np.asarray(weights) / 3.0\n"
    "def scaled(h, w):\n    return h * w.view(-1, 1)\nh = torch.ones(2, 3, device=DEV)"
)

NOTEBOOKS = [
    Notebook(
        "packed_by_the_model_then_gathered",
        (_PACKING, "lengths = torch.tensor([4, 2])\nout = last(net(x, lengths), lengths)"),
        "    return h.gather(1, at.to(h.device)).squeeze(1)",
    ),
    Notebook(
        "packed_by_the_model_under_a_keyword",
        (_PACKING, "lengths = torch.tensor([4, 2])\nh = net(x, sizes=lengths)\nout = last(h, lengths)"),
        "    return h.gather(1, at.to(h.device)).squeeze(1)",
    ),
    Notebook(
        "packed_in_a_function_around",
        (
            _PACKING + "\ndef run(x):\n    lengths = torch.tensor([4, 2])\n    return last(net(x, lengths), lengths)",
            "out = run(x)",
        ),
        "    return h.gather(1, at.to(h.device)).squeeze(1)",
    ),
    Notebook(
        "counted_by_numpy_in_a_function",
        (_COUNTING, "w = torch.tensor([1.0, 2.0])\nscaled(h, w); out = shares(w)"),
        "    return h * w.to(h.device).view(-1, 1)",
    ),
]


@pytest.mark.parametrize("case", NOTEBOOKS, ids=lambda case: case.name)
def test_moved_at_the_use(case: Notebook) -> None:
    check_first_fix(case)
