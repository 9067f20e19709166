"""Copies and waits: in programs without mistakes exactly those that the source makes."""

from __future__ import annotations

import ast
import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from conftest import Notebook

PROGRAMS = sorted((Path(__file__).parents[1] / "programs").glob("*.py"))

# Counted by hand in the sources. Sixteen batches in two epochs, and eight after the checkpoint.
IMAGE_CLASSIFIER = {
    (3, "Net().to(device)"): 15,  # 10 parameters and 5 buffers
    (3, "class_weights.to(device)"): 1,
    (4, "data.to(device)"): 16,
    (4, "target.to(device)"): 16,
    (4, "loss.item()"): 16,
    (4, "running.item()"): 2,
    (6, "data.to(device)"): 8,
    (6, "target.to(device)"): 8,
    # map_location has put the step counters of Adam on the card: read twice for each of 10 parameters
    (6, "optimizer.step()"): 160,
    (6, "loss.item()"): 8,
    (6, "running.item()"): 1,
    (7, "data.to(device)"): 2,
    (7, "target.to(device)"): 2,
    (7, "prediction.eq(target).sum().item()"): 2,
    (7, "recall.cpu()"): 1,
}
# Twelve batches of two entries; Normal() looks at both of its arguments.
VAE = {
    (3, "VAE().to(device)"): 12,  # 10 parameters and 2 buffers
    (4, "value.to(device, non_blocking=True)"): 24,
    (4, "torch.distributions.Normal(mu, (0.5 * logvar).exp())"): 24,
    (4, "torch.distributions.Normal(self.prior_mean, self.prior_std)"): 24,
    (4, "scaler.step(optimizer)"): 12,
    (4, "loss.item()"): 12,
    (5, "p.to(device)"): 2,
    (5, "torch.distributions.Normal(self.prior_mean, self.prior_std)"): 2,
    (5, "torch.cat([pictures.flatten(1), samples]).cpu()"): 1,
}


@pytest.fixture(autouse=True)
def checked_arguments(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first torch.compile of a process stops distributions from checking theirs (torch/_dynamo/eval_frame.py)."""
    monkeypatch.setattr(torch.distributions.Distribution, "_validate_args", True)


# Twenty steps; the first update of the moving average copies on the card.
GAN = {
    (2, "Generator().to(device)"): 11,  # 8 parameters and 3 buffers
    (2, "Discriminator().to(device)"): 4,
    (4, "sample_ring(32).to(device)"): 20,
    (4, "errD_real.item()"): 20,
    (4, "errD_fake.item()"): 20,
    (4, "errG.item()"): 20,
    (4, "shadow.update_parameters(netG)"): 19,  # its counter is on the host (torch/optim/swa_utils.py)
    (4, "netG(fixed_noise).detach().cpu()"): 2,
    (5, "shadow(fixed_noise).cpu()"): 1,
}
# Twelve epochs over two cards.
GRAPH_NETWORK = {
    (3, "Body().to(device)"): 10,
    (3, "nn.Linear(16, n_classes).to(head_device)"): 2,
    (3, "x.to(device)"): 1,
    (3, "edge_index.to(device)"): 1,
    (3, "y.to(head_device)"): 1,
    (3, "train_mask.nonzero().squeeze(1).to(head_device)"): 1,
    (4, "body(x, edge_index).to(head_device)"): 12,
    # two norms of the head go to the first card, and the coefficient comes back (torch/nn/utils/clip_grad.py)
    (4, "nn.utils.clip_grad_norm_([*body.parameters(), *head.paramet…"): 36,
    (4, "loss.item()"): 12,
    (5, "body(x, edge_index).to(head_device)"): 1,
    (5, "(predicted == labels)[test_index]"): 1,
    (5, "accuracy.item()"): 2,
    (6, "torch.sparse_coo_tensor(edge_index.flip(0), values, size, c…"): 1,  # check_invariants reads the indices
    (6, "torch.bincount(edge_index[1], minlength=n_nodes)"): 1,
    (6, "torch.equal(degree.long(), counted)"): 1,
    (6, "float(degree.std())"): 1,
}
# Seven pieces of text in two epochs; twelve words sampled.
LANGUAGE_MODEL = {
    (2, "data.view(batch_size, -1).t().contiguous().to(device)"): 1,
    (3, "RNNModel(n_tokens, 16, 24, 2).to(device)"): 11,
    (4, "loss.item()"): 14,
    (5, "pad_sequence(sentences).to(device)"): 1,
    (5, "pack_padded_sequence(model.encoder(padded), lengths, enforc…"): 1,  # the order of the lengths
    (5, "pad_packed_sequence(output)"): 1,  # and back
    (5, "lengths.to(device)"): 2,
    (5, "scores.tolist()"): 1,
    (6, "torch.multinomial(weights, 1, generator=generator)"): 12,
    (6, "token.item()"): 12,
}
# 69 steps in the corridor, 39 of them at random; learning from the sixteenth on.
REPLAY_BUFFER = {
    (3, "DQN(7, 2).to(device)"): 8,  # two networks
    (5, "state.to(device)"): 69,
    (5, "torch.tensor([[random.randrange(2)]], device=device, dtype=…"): 39,
    (5, "action.item()"): 69,
    (5, "action.cpu()"): 69,
    (5, "torch.tensor([s is not None for s in batch.next_state], dev…"): 54,
    (5, "torch.cat([s for s in batch.next_state if s is not None]).t…"): 54,
    (5, "torch.cat(batch.state).to(device)"): 54,
    (5, "torch.cat(batch.action).to(device)"): 54,
    (5, "torch.cat(batch.reward).to(device)"): 54,
    (5, "next_values[non_final]"): 54,
    (5, "loss.item()"): 54,
    (6, "policy_net(torch.eye(7, device=device)).detach().cpu()"): 1,
}
# Sixteen steps, then sentences that are all over after five words.
TRANSFORMER = {
    (2, "Seq2Seq().to(device)"): 38,
    (4, "source.to(device)"): 16,
    (4, "target.to(device)"): 16,
    # the decoder asks whether its mask is a causal one (torch/nn/modules/transformer.py, _detect_is_causal_mask)
    (4, "self.transformer( self.tokens(source), self.tokens(target),…"): 16,
    (4, "loss.item()"): 16,
    (5, "model.transformer.decoder(model.tokens(ys), memory, tgt_mas…"): 5,
    (5, "if done.all()"): 5,
    (5, "source.to(device)"): 1,
    (5, "float(decoded.sum())"): 1,
    (6, "torch.allclose(weights @ q, same, atol=1e-5)"): 1,
    (6, "weights.mean((0, 1)).cpu()"): 1,
}


EXPECTED = {
    "gan": GAN,
    "graph_network": GRAPH_NETWORK,
    "image_classifier": IMAGE_CLASSIFIER,
    "language_model": LANGUAGE_MODEL,
    "replay_buffer": REPLAY_BUFFER,
    "transformer": TRANSFORMER,
    "vae": VAE,
}


@pytest.mark.parametrize("path", PROGRAMS, ids=[path.stem for path in PROGRAMS])
def test_clean_programs(notebook: Notebook, path: Path) -> None:
    """No finding, the losses of an unchecked run on the host, and the copies that the source makes."""
    notebook.names.update(DEV="cuda:0", DEV2="cuda:1", HOST="cpu")
    cells = path.read_text("utf-8").split("# %%\n")
    counted: Counter[tuple[int, str]] = Counter()
    random.seed(0)
    for number, cell in enumerate(cells):
        torch.manual_seed(0)
        checked = notebook.check(cell)
        assert checked.run.error is None, checked.run.text
        assert checked.report.findings == ()
        assert checked.report.odd == ()
        for transfer in checked.report.transfers:
            counted[number, transfer.expression] += transfer.count
    host = {"__name__": "__main__", "DEV": "cpu", "DEV2": "cpu", "HOST": "cpu"}
    random.seed(0)
    for cell in cells:
        torch.manual_seed(0)
        exec(cell, host)
    assert notebook.names["losses"] == pytest.approx(host["losses"], rel=1e-6, abs=1e-8)
    assert dict(counted) == EXPECTED[path.stem]


WAITS = """x = torch.arange(6.0, device=device)
if x.any():
    pass
a = float(x[1])
b = x.tolist()
c = x[x > 2]
d = torch.nonzero(x)
e = torch.where(x > 1)
f = x.unique()
g = torch.equal(x, x)
h = f"{x.sum():.2f}"
i = x.masked_select(x > 1)
j = list(range(6))[x[2].long()]
k = torch.tensor([x[0], x[1]])
l = F.one_hot(x.long())
m = 3.0 in x
str(x)
n = x.repeat_interleave(x.long())
o = x[x[1].long()]
p = x[:x[3].long()]
q = torch.multinomial(x, 1)
r = torch.linalg.inv(torch.eye(2, device=device))
s = torch.full((2,), x[0])
t = torch.sparse_coo_tensor(x.long()[None], x, check_invariants=False)
x
"""


def test_every_kind_of_wait(notebook: Notebook) -> None:
    report = notebook.check(WAITS).report
    assert [transfer.place.line for transfer in report.transfers] == [3, *range(5, 27)]
    assert {transfer.kind for transfer in report.transfers} == {"sync"}
    assert {transfer.source for transfer in report.transfers} == {"cuda:0"}
    assert not any(transfer.loop or transfer.explicit for transfer in report.transfers)


LAYOUTS = {
    "sparse": "torch.eye(3).to_sparse()",
    "rows": "torch.eye(3).to_sparse_csr()",
    "nested": "torch.nested.nested_tensor([torch.ones(2, 3), torch.ones(1, 3)])",
    "quantized": "torch.quantize_per_tensor(torch.ones(3), 1.0, 0, torch.qint8)",
    "not yet made": "nn.LazyLinear(2).weight",
    "on meta": "torch.ones(3, device='meta')",
    "complex, conjugated": "torch.ones(3, dtype=torch.complex64).conj()",
    "a class of the user's": "torch.ones(3).as_subclass(type('Mine', (torch.Tensor,), {}))",
    "empty": "torch.ones(0, 4)",
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("made", LAYOUTS.values(), ids=LAYOUTS)
@pytest.mark.parametrize("options", ["", "cuda:0"])
def test_tensors_of_every_layout_run_as_they_do_unchecked(notebook: Notebook, made: str, options: str) -> None:
    cell = (
        f"t = {made}\nfor _ in range(2):\n    u = t.to(device)\n    v = u.cpu()\nw = [str(u), t.clone(), u.detach()]\n"
    )
    plain = notebook.shell.run(cell)
    checked = notebook.check(cell, options)
    assert type(checked.run.error) is type(plain.error), checked.run.text
    assert str(checked.run.error) == str(plain.error)
    assert checked.report.notes == ()
    if plain.error is None and made != LAYOUTS["on meta"]:
        assert {each.call for each in checked.report.transfers} >= {".to()", ".cpu()"}


DISPLAYED = """import pprint
x = torch.ones(3, device=device)
class Named:
    def __repr__(self):
        return f"Named({x})"
display(x)
print(x, [x])
str(x), repr([x])
pprint.pprint([x])
display(Named())
[x, {"a": x}]
"""


def test_what_a_cell_displays_is_told_from_what_it_prints(notebook: Notebook) -> None:
    checked = notebook.check(DISPLAYED)
    told = {(each.place.line, each.call, each.count, each.inside) for each in checked.report.transfers}
    assert told == {
        (7, "display()", 1, False), (8, "print()", 2, False), (9, "repr()", 1, False), (10, "repr()", 1, True),
        (6, "display()", 1, False), (12, "displayed", 2, False),
    }  # fmt: skip
    assert "×2, displayed by the cell" in checked.run.text
    assert "print() inside" not in checked.run.text


def test_on_the_host_nothing_waits(notebook: Notebook) -> None:
    assert notebook.check(WAITS.replace("device=device", "device='cpu'")).report.transfers == ()


def test_calls_that_need_no_answer(notebook: Notebook) -> None:
    cell = """x = torch.arange(6.0, device=device)
x[2], x[1:3], x[None], x[..., 0], x[[1, 2]].shape
x[torch.tensor(1)], x[x.long()[1:]]
x[0] = 1.0
torch.where(x > 1, x, 0.0)
x.repeat_interleave(2)
F.one_hot(x.long(), 6)
x.to(device), x.cuda(), x.to(torch.float16), x.clone();
x[1:3] = x[2:4]
torch.multinomial(x, 2, replacement=True)
torch.linalg.inv_ex(torch.eye(2, device=device))
torch.full((2,), 3.0, device=device), torch.arange(3, device=device)
torch.sparse_coo_tensor(x.long()[None], x, (6,), check_invariants=False);
"""
    transfers = notebook.check(cell).report.transfers
    assert [transfer.expression for transfer in transfers] == []


def test_copies_that_nobody_asked_for(notebook: Notebook) -> None:
    cell = (
        "x = torch.arange(6.0, device=device)\ny = x[torch.tensor([1, 2])]\n"
        "x[1:3] = torch.ones(2)\nx.copy_(torch.ones(6));\n"
    )
    found = [
        (each.place.line, each.kind, each.source, each.target, each.explicit)
        for each in notebook.check(cell).report.transfers
    ]
    assert found == [
        (3, "copy", "cpu", "cuda:0", False),
        (4, "copy", "cpu", "cuda:0", False),
        (5, "copy", "cpu", "cuda:0", True),
    ]


def test_bytes_and_counts(notebook: Notebook) -> None:
    cell = "x = torch.zeros(100, 10)\nfor n in range(7):\n    y = x.to(device, torch.float16)\n    z = y.cpu()\n"
    first, second = notebook.check(cell).report.transfers
    assert (first.count, first.bytes, first.source, first.target) == (7, 7 * 100 * 10 * 2, "cpu", "cuda:0")
    assert (second.count, second.bytes, second.source, second.target) == (7, 7 * 100 * 10 * 2, "cuda:0", "cpu")


@pytest.mark.parametrize(
    ("body", "advice"),
    [
        ("total += loss.item()", "read it once, after the loop"),
        ("y = batch.to(device)", "pin_memory=True"),
        ("y = table.to(device)", "move it once, before the loop"),
        ("net.to('cuda:1'); net.to(device)", "move the module once"),
        ("if loss > 1:\n        pass", "every n-th step"),
        ("print(loss)", "print every n-th step"),
        ("display(loss)", "print every n-th step"),
        ("kept.append(big.detach().cpu())", "copy them once, after the loop"),
        ("y = big[big > 0]", "torch.where()"),
        ("y = big[index]", "make the index on cuda:0"),
        ("w = torch.tensor([1.0, 2.0], device=device)", "build the tensor once"),
        ("y = big.to('cuda:1')[:1]", "move it once, before the loop"),
        ("n = torch.distributions.Normal(big, 1.0)", "validate_args=False"),
        ("y = big[:loss.long()]", "a Python number"),
        ("y = torch.linalg.inv(square)", "linalg.inv_ex()"),
        ("y = torch.multinomial(big, 1)", "exponential_()"),
        ("y = torch.full((2,), loss)", "a Python number"),
    ],
)
def test_advice_in_a_loop(notebook: Notebook, body: str, advice: str) -> None:
    notebook.run(
        "loss = torch.tensor(2.0, device=device); table = torch.ones(5); kept = []; total = 0\n"
        "big = torch.ones(5, device=device); index = torch.tensor([0, 1])\n"
        "square = torch.eye(2, device=device); net = nn.Linear(2, 2).to(device)\n"
        "loader = [torch.ones(n + 1) for n in range(3)]\n"
    )
    transfers = notebook.check(f"for batch in loader:\n    {body}\n").report.transfers
    assert transfers
    assert all(transfer.loop and transfer.count >= 3 for transfer in transfers)
    assert any(advice in transfer.advice for transfer in transfers), transfers


def test_outside_a_loop_there_is_no_advice(notebook: Notebook) -> None:
    cell = "x = torch.ones(3, device=device)\nx.sum().item()\nfor n in x.tolist():\n    pass\nelse:\n    x.cpu()\n"
    for transfer in notebook.check(cell).report.transfers:
        assert not transfer.loop
        assert transfer.advice == ""


def test_a_function_called_in_a_loop(notebook: Notebook) -> None:
    cell = "def step(x):\n    return x.item()\nx = torch.ones((), device=device)\nfor _ in range(4):\n    step(x)\n"
    (transfer,) = notebook.check(cell).report.transfers
    assert (transfer.count, transfer.loop, transfer.place.line) == (4, True, 3)
    assert transfer.place.function == "step"


@pytest.mark.parametrize("line", ["a{0} = x.sum().item()", "x[{0}] = host[{0}]", "if x.sum():\n    b{0} = 1"])
def test_a_cell_is_read_once_however_many_lines_of_it_wait(
    notebook: Notebook, line: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    notebook.run("x = torch.ones(400, device=device)\nhost = torch.ones(400)")
    walked = []
    walk = ast.walk

    def counted(node: ast.AST) -> Iterator[ast.AST]:
        walked.append(node)
        return walk(node)

    def walks(lines: int) -> int:
        walked.clear()
        notebook.check("".join(line.format(at) + "\n" for at in range(lines)))
        return sum(isinstance(node, ast.Module) for node in walked)

    monkeypatch.setattr(ast, "walk", counted)
    walks(2)  # the first time the diagnosis is imported too
    assert walks(60) <= walks(20) + 2


SYNCHRONISED = """event, stream = torch.cuda.Event(), torch.cuda.Stream()
for _ in range(3):
    torch.cuda.synchronize()
torch.cuda.synchronize(1)
torch.cuda.synchronize(device="cuda:1")
torch.accelerator.synchronize()
event.record()
event.synchronize()
stream.synchronize()
"""


def test_waits_for_a_device_a_stream_or_an_event(notebook: Notebook) -> None:
    checked = notebook.check(SYNCHRONISED)
    assert checked.run.error is None, checked.run.text
    found = [(each.place.line, each.call, each.source, each.count) for each in checked.report.transfers]
    assert found == [
        (4, "torch.cuda.synchronize()", "cuda:0", 3),
        (5, "torch.cuda.synchronize()", "cuda:1", 1),
        (6, "torch.cuda.synchronize()", "cuda:1", 1),
        (7, "torch.accelerator.synchronize()", "cuda", 1),
        (9, "Event.synchronize()", "cuda:0", 1),
        (10, "Stream.synchronize()", "cuda:0", 1),
    ]
    assert {(each.kind, each.bytes) for each in checked.report.transfers} == {("sync", 0)}
    first = checked.report.transfers[0]
    assert first.loop
    assert "once, after the loop, will do" in first.advice
    assert "8 waits for a device" in checked.run.text
    assert "0 B" not in checked.run.text.split("name", 1)[1]


def test_what_waits_is_put_back(notebook: Notebook) -> None:
    before = torch.cuda.synchronize, torch.cuda.Stream.synchronize, torch.cuda.Event.synchronize
    assert notebook.check("torch.cuda.synchronize()", "--no-transfers").report.transfers == ()
    notebook.check("torch.cuda.synchronize()\n1 / 0")
    assert (torch.cuda.synchronize, torch.cuda.Stream.synchronize, torch.cuda.Event.synchronize) == before


def test_a_wait_inside_an_inner_check_is_counted_once(notebook: Notebook) -> None:
    notebook.run("import ipydevice")
    checked = notebook.check("with ipydevice.check() as inner:\n    torch.cuda.synchronize()\n")
    assert [each.count for each in notebook.names["inner"].transfers] == [1]
    assert [each.count for each in checked.report.transfers] == [1]


def test_a_module_a_packed_sequence_and_pinned_memory(notebook: Notebook) -> None:
    notebook.run("parts = torch.ones(2, 3, 4), torch.tensor([3, 2])\nnet = nn.Linear(2, 2)")
    checked = notebook.check(
        "packed = nn.utils.rnn.pack_padded_sequence(*parts, batch_first=True).to(device)\nnet.to(device)\n"
        "pinned = torch.ones(3).pin_memory()\nagain = pinned.pin_memory()\n"
        "for _ in range(2):\n    x = torch.ones(3).pin_memory()\n    y = x.to(device)\n"
    )
    found = {(each.place.line, each.call): (each.target, each.count) for each in checked.report.transfers}
    assert found == {
        (2, ".to()"): ("cuda:0", 1),
        (3, ".to()"): ("cuda:0", 2),
        (4, ".pin_memory()"): ("cpu (pinned)", 1),
        (7, ".pin_memory()"): ("cpu (pinned)", 2),
        (8, ".to()"): ("cuda:0", 2),
    }
    advice = {each.place.line: each.advice for each in checked.report.transfers}
    assert advice[7] == "DataLoader(pin_memory=True) does it in a thread beside the loop"
    assert advice[8].startswith("its memory is pinned: .to(device, non_blocking=True)")
    assert "5 copies between devices" in checked.run.text  # pinning is none


def test_help_says_what_it_does_not_see(notebook: Notebook) -> None:
    text = str(notebook.shell.ip.find_cell_magic("devicecheck").__doc__)
    assert "not the copies and waits that C++ makes inside of one call" in text
