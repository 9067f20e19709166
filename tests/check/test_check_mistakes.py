"""Planted mistakes: all found in one run, none invented, and the numbers of the corrected cell."""

from __future__ import annotations

import pytest
from conftest import Notebook, same_on_the_host

MODEL = """
torch.manual_seed(1)
model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3)).to(device)
data = [(torch.randn(5, 4), torch.randint(0, 3, (5,))) for _ in range(3)]
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
"""

ONE = """losses = []
for images, labels in data:
    images = images.to(device)
    loss = F.cross_entropy(model(images), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.detach())
total = torch.stack(losses)
"""


def test_one(notebook: Notebook) -> None:
    notebook.run(MODEL)
    checked = notebook.check(ONE)
    assert checked.run.error is None
    assert checked.mistakes == [(5, "labels")]
    (finding,) = checked.report.findings
    assert finding.count == 3
    assert finding.repaired
    assert finding.diagnosis.cause == "label_not_moved"
    assert finding.diagnosis.fixes
    same_on_the_host(notebook, MODEL, ONE)


THREE = """x = torch.randn(6, 4, device=device)
shift = torch.ones(4)
y = x + shift
weights = torch.rand(3)
picked = torch.cat([x, torch.zeros(2, 4)])
z = model(x) * weights
"""


def test_three(notebook: Notebook) -> None:
    notebook.run(MODEL)
    checked = notebook.check(THREE)
    assert checked.mistakes == [(4, "shift"), (6, "torch.zeros(2, 4)"), (7, "weights")]
    assert [finding.count for finding in checked.report.findings] == [1, 1, 1]
    same_on_the_host(notebook, MODEL, THREE)


OBJECTS = """
torch.manual_seed(2)
class Positions(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.table = torch.randn(10, d)
        self.mix = nn.Linear(d, d)
    def forward(self, x):
        return self.mix(x + self.table[:x.shape[1]])
class Heads(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.heads = [nn.Linear(d, 2) for _ in range(3)]
    def forward(self, x):
        return sum(head(x) for head in self.heads)
encoder = nn.Sequential(Positions(4), Positions(4), Positions(4)).to(device)
heads = Heads(4).to(device)
left = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4), nn.ReLU(), nn.Linear(4, 4))
criterion = nn.CrossEntropyLoss(weight=torch.tensor([0.2, 0.3, 0.5]))
model = nn.Linear(4, 3).to(device)
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
memory = nn.LSTM(4, 4, batch_first=True).to(device)
attention = nn.MultiheadAttention(4, 2, dropout=0.5, batch_first=True).to(device)
x = torch.randn(6, 4, device=device)
y = torch.randint(0, 3, (6,), device=device)
sequence = torch.randn(6, 5, 4, device=device)
history = torch.zeros(3)
"""

TEN = """a = encoder(sequence)
b = heads(x)
c = left(x)
loss = criterion(model(x), y)
table = torch.arange(12.0).view(4, 3)
d = table[torch.tensor([0, 2], device=device)]
state = (torch.zeros(1, 6, 4), torch.zeros(1, 6, 4))
e, _ = memory(sequence, state)
generator = torch.Generator()
f = torch.randn(3, generator=generator, device=device)
history += F.softmax(model(x), 1).mean(0).detach()
g = torch.from_numpy(loss.detach().numpy())
lengths = torch.tensor([5, 5, 4, 3, 2, 1], device=device)
h = nn.utils.rnn.pack_padded_sequence(sequence, lengths, batch_first=True).data
keys = torch.randn(6, 5, 4)
i, _ = attention(sequence, keys, keys)
mask = torch.ones(6, 4) > 0
j = x.masked_fill(mask, 0.0)
loss.backward()
optimizer.step()
after = torch.cat([p.flatten() for p in model.parameters()])
running = left[1].running_mean
"""


def test_ten_of_different_kinds(notebook: Notebook) -> None:
    notebook.run(OBJECTS)
    checked = notebook.check(TEN)
    assert checked.run.error is None, checked.run.text
    lines = [finding.places[0].line for finding in checked.report.findings]
    culprits = [culprit for _, culprit in checked.mistakes]
    index = culprits.index("table") if "table" in culprits else culprits.index("torch.tensor([0, 2], device=device)")
    culprits[index] = (
        "table"  # made here on the host, and used with an index made here on the card: either may be meant
    )
    assert culprits == [
        "self.table",
        "head",
        "left",
        "criterion.weight",
        "table",
        "state[0]",
        "generator",
        "history",
        "loss",
        "lengths",
        "keys",
        "mask",
    ]
    assert lines[2:] == [4, 5, 7, 9, 11, 12, 13, 15, 17, 19]
    same_on_the_host(notebook, OBJECTS, TEN)


def test_a_model_left_on_the_host_is_one_finding(notebook: Notebook) -> None:
    notebook.run("net = nn.Sequential(*[nn.Linear(4, 4) for _ in range(12)])\nx = torch.ones(2, 4, device=device)")
    checked = notebook.check("for _ in range(2):\n    y = net(x)\n")
    (finding,) = checked.report.findings
    assert checked.mistakes == [(3, "net")]
    assert finding.count == 24


def test_one_line_that_builds_many_objects_is_one_mistake(notebook: Notebook) -> None:
    notebook.run(OBJECTS)
    (finding,) = notebook.check("encoder(sequence)").report.findings
    assert finding.count == 3
    assert finding.diagnosis.cause == "plain_tensor_attribute"


def test_what_was_made_from_a_stray_is_the_same_mistake(notebook: Notebook) -> None:
    notebook.run("x = torch.randn(4, device=device)\nbatch = [(torch.randn(4), 1)]")
    checked = notebook.check(
        "for target, _ in batch:\n    late = target > 0\n    a = x - target\n    b = x[late]\n    c = x * late\n"
    )
    assert [culprit for _, culprit in checked.mistakes] == ["target"]


def test_what_is_computed_from_a_stray_is_the_same_mistake(notebook: Notebook) -> None:
    """Through functions, attributes and writes that were kept on the host."""
    notebook.run("x = torch.rand(4, device=device)\nindex = torch.tensor([0, 1, 2, 3], device=device)")
    cell = (
        "def degree():\n    out = torch.zeros(4)\n    return out.scatter_add_(0, index, torch.ones_like(x))\n"
        "norm = degree().clamp(min=1).rsqrt()\ny = x * norm\nz = torch.stack([x, norm.double().float()])\n"
    )
    checked = notebook.check(cell)
    assert [culprit for _, culprit in checked.mistakes] == ["out"]
    assert [place.line for place in checked.report.findings[0].places] == [4, 6, 7]


def test_members_of_one_batch(notebook: Notebook) -> None:
    notebook.run("emb = nn.Embedding(5, 2).to(device)\nbatch = {'ids': torch.tensor([1, 2]), 'mask': torch.ones(2, 1)}")
    checked = notebook.check("h = emb(batch['ids'])\ny = h * batch['mask']")
    assert len(checked.report.findings) == 1


def test_what_one_module_has_registered(notebook: Notebook) -> None:
    setup = (
        "net = nn.Linear(2, 2).to(device)\nnet.register_buffer('a', torch.ones(2))\n"
        "net.register_buffer('b', torch.ones(2))\nx = torch.ones(3, 2, device=device)"
    )
    notebook.run(setup)
    checked = notebook.check("y = net(x) * net.a\nz = y + net.b")
    assert len(checked.report.findings) == 1
    assert checked.report.findings[0].count == 2


def test_two_mistakes_on_one_line(notebook: Notebook) -> None:
    notebook.run("x = torch.randn(4, device=device)")
    checked = notebook.check("p = torch.ones(4)\nq = torch.ones(4)\nr = x * p + x * q\n")
    assert checked.mistakes == [(4, "p"), (4, "q")]


IN_ONE_CALL = {
    "labels and the weights of a loss": (
        "m = nn.Linear(4, 3).to(device)\nx = torch.randn(5, 4, device=device)\n"
        "labels = torch.arange(5) % 3\ncriterion = nn.CrossEntropyLoss(weight=torch.tensor([1.0, 2.0, 3.0]))",
        "loss = criterion(m(x), labels).detach()",
        ["labels", "criterion.weight"],
    ),
    "members of a list": (
        "x = torch.randn(5, 4, device=device)",
        "a = torch.ones(2, 4)\nb = torch.zeros(1, 4)\nc = torch.cat([x, a, b])",
        ["a", "b"],
    ),
    "what has no name": (
        "x = torch.randn(5, 4, device=device)",
        "c = torch.cat([x, torch.ones(2, 4), torch.zeros(1, 4)])",
        ["torch.ones(2, 4)", "torch.zeros(1, 4)"],
    ),
    "three": (
        "q = torch.randn(1, 2, 3, 4, device=device)",
        "k, v = torch.randn(1, 2, 3, 4), torch.randn(1, 2, 3, 4)\nm = torch.zeros(3, 3)\n"
        "y = F.scaled_dot_product_attention(q, k, v, attn_mask=m)",
        ["k", "v", "m"],
    ),
    "what is written to is at home": (
        "x = torch.zeros(5, device=device)",
        "i = torch.tensor([0, 1])\nvalues = torch.ones(2)\nx.scatter_add_(0, i, values)",
        ["i", "values"],
    ),
    "one of them is used by way of a view": (
        "x = torch.randn(2, 3, device=device)",
        "one, other = torch.ones(3, 2), torch.zeros(1)\ny = torch.addcmul(x, one.T, other)",
        ["one", "other"],
    ),
    "an index may stay on the host": (
        "x = torch.zeros(5, device=device)\ni = torch.tensor([0, 1])",
        "v = torch.ones(2)\nx[i] = v",
        ["v"],
    ),
    "parts of one object are one mistake": (
        "from types import SimpleNamespace\nx = torch.randn(2, 3, device=device)",
        "batch = SimpleNamespace(low=torch.ones(3), high=torch.zeros(3))\ny = torch.addcmul(x, batch.low, batch.high)",
        ["batch.low"],
    ),
    "members of one batch are one mistake": (
        "x = torch.randn(2, 3, device=device)\nbatch = [torch.ones(3), torch.zeros(3)]",
        "y = torch.addcmul(x, batch[0], batch[1])",
        ["batch[0]"],
    ),
}


@pytest.mark.parametrize("case", IN_ONE_CALL.values(), ids=IN_ONE_CALL)
def test_every_mistake_of_one_call(notebook: Notebook, case: tuple[str, str, list[str]]) -> None:
    setup, cell, culprits = case
    notebook.run(setup)
    checked = notebook.check(cell)
    assert checked.run.error is None, checked.run.text
    assert [culprit for _, culprit in checked.mistakes] == culprits
    for finding in checked.report.findings:
        assert finding.repaired
        assert finding.diagnosis.cause != "unknown"
        assert finding.offered or finding.mended_with == 0
        assert finding.diagnosis.culprit is not None
        assert finding.diagnosis.culprit.expression in finding.repair or "what meets it" in finding.repair
    same_on_the_host(notebook, setup, cell)


def test_each_mistake_of_a_call_counts_its_calls(notebook: Notebook) -> None:
    notebook.run("x = torch.randn(5, 4, device=device)\nb = torch.ones(4)")
    checked = notebook.check(
        "for _ in range(3):\n    a = torch.ones(4)\n    c = torch.addcmul(x, a, b)\nd = x * b\ne = x + a\n"
    )
    counts = {finding.diagnosis.culprit.expression: finding.count for finding in checked.report.findings}
    assert counts == {"a": 4, "b": 4}


def test_a_fix_that_mends_two_mistakes_is_offered_once(notebook: Notebook) -> None:
    notebook.run("x = torch.randn(5, 4, device=device)")
    checked = notebook.check("a = torch.ones(4)\nb = torch.zeros(4)\nc = torch.addcmul(x, a, b)\n")
    one, other = checked.report.findings
    assert other.mended_with == 0
    assert not other.offered
    assert "fix 1 mends this too" in checked.run.text
    mended = one.offered[0].edits[0].after
    notebook.run(mended.removeprefix("%%devicecheck -o report \n"))


@pytest.mark.parametrize("second", ["cuda:1", "cuda:0"])
def test_between_two_cards(notebook: Notebook, second: str) -> None:
    notebook.run(f"x = torch.randn(4, device='cuda:0')\nw = torch.nn.Linear(4, 2).to({second!r})")
    checked = notebook.check("y = w(x)\nz = y + 1\n")
    assert len(checked.report.findings) == (second == "cuda:1")


def test_the_code_and_its_objects_stay_as_they_were(notebook: Notebook) -> None:
    notebook.run("net = nn.Linear(4, 2)\nx = torch.ones(2, 4, device=device)")
    notebook.run("before = {k: v.clone() for k, v in net.state_dict().items()}")
    notebook.check("y = net(x)")
    net = notebook.names["net"]
    assert {str(parameter.device) for parameter in net.parameters()} == {"cpu"}
    assert all((value == notebook.names["before"][name]).all() for name, value in net.state_dict().items())
