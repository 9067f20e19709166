"""Where a second attempt must be made with care, or not at all."""

from __future__ import annotations

import subprocess
import sys
import threading
import types
import warnings
from pathlib import Path

import pytest
import torch
from conftest import Notebook, same_on_the_host
from torch.overrides import _get_current_function_mode_stack

import ipydevice
from ipydevice.virtual import virtual_gpus

X = "torch.manual_seed(3)\nx = torch.randn(4, device=device)\n"


@pytest.mark.parametrize(
    "write",
    [
        "acc = torch.zeros(4)\nacc += x",
        "acc = torch.zeros(4)\nacc.add_(x, alpha=2)",
        "acc = torch.zeros(4)\ntorch.add(x, x, out=acc)",
        "acc = torch.zeros(2, 4)\nacc[torch.tensor([True, False])] = x * 2 - x.mean()",
        "acc = torch.zeros(4)\nacc.index_add_(0, torch.arange(4, device=device), x)",
        "acc = torch.zeros(4)\nseen = acc.view(2, 2)\nacc.mul_(0).add_(x)",
    ],
)
def test_the_target_of_a_write_stays_the_others_move(notebook: Notebook, write: str) -> None:
    notebook.run(X)
    checked = notebook.check(write)
    assert checked.run.error is None, checked.run.text
    assert notebook.names["acc"].device.type == "cpu"
    same_on_the_host(notebook, X, write)


def test_gradients_reach_the_leaves(notebook: Notebook) -> None:
    setup = "w = torch.ones(4, requires_grad=True)\n" + X
    cell = "loss = (x * w).sum()\nloss.backward()\ngrad = w.grad\n"
    notebook.run(setup)
    checked = notebook.check(cell)
    assert len(checked.report.findings) == 1
    assert notebook.names["w"].grad.device.type == "cpu"
    same_on_the_host(notebook, setup, cell)


def test_a_composite_that_has_drawn_numbers_draws_them_again(notebook: Notebook) -> None:
    """Attention drops weights out before it meets the projection that was left on the host."""
    setup = "torch.manual_seed(4)\natt = nn.MultiheadAttention(4, 2, dropout=0.5, batch_first=True)\n" + X
    move = "for _p in (att.in_proj_weight, att.in_proj_bias):\n    _p.data = _p.data.to(device)\n"
    cell = (
        "torch.manual_seed(5)\nq = torch.randn(2, 3, 4, device=device)\n"
        "out, _ = att(q, q, q)\nnext_numbers = torch.rand(3)\n"
    )
    notebook.run(setup + move)
    checked = notebook.check(cell)
    assert len(checked.report.findings) == 1, checked.run.text
    same_on_the_host(notebook, setup, cell)


def test_backward_is_never_tried_again(notebook: Notebook) -> None:
    notebook.run("x = torch.randn(4, device=device, requires_grad=True)\nalso = torch.ones(4)")
    cell = "y = x * also\nz = x * 2\nz.backward(torch.ones(4))\n"
    checked = notebook.check(cell)
    assert type(checked.run.error) is RuntimeError
    assert "invalid gradient" in str(checked.run.error) or "same device" in str(checked.run.error)
    assert "graph a second time" not in checked.run.text
    assert checked.mistakes[0] == (2, "also")
    assert [finding.repaired for finding in checked.report.findings] == [True, False]  # the second has ended the cell
    assert checked.report.error == "RuntimeError"


def test_a_hook_in_backward_raises_as_usual(notebook: Notebook) -> None:
    notebook.run("x = torch.randn(4, device=device, requires_grad=True)\nkept = torch.ones(4)")
    checked = notebook.check("y = x * 2\ny.register_hook(lambda g: g * kept)\ny.sum().backward()\n")
    assert type(checked.run.error) is RuntimeError
    assert checked.mistakes == [(3, "kept")]
    assert not checked.report.findings[0].repaired
    assert "kept is on cpu" in checked.run.text
    assert "could not be repaired" in checked.run.text


@pytest.mark.parametrize("other", ["cpu", "cuda:1"])
def test_a_gradient_assigned_by_hand(notebook: Notebook, other: str) -> None:
    """The parameter is written to and stays; torch refuses the gradient in C++, from within the assignment."""
    notebook.run(
        f"p = nn.Parameter(torch.ones(3, device=device))\ng = torch.arange(3.0, device={other!r})\n"
        "opt = torch.optim.SGD([p], lr=1.0)"
    )
    checked = notebook.check("for _ in range(2):\n    p.grad = g\n    opt.step()\np.grad = None\n")
    assert checked.run.error is None, checked.run.text
    ((line, culprit),) = checked.mistakes
    assert line == 3
    assert culprit == "g" or other != "cpu"  # between two cards nothing tells which is meant
    assert checked.report.findings[0].count == 2
    assert notebook.names["p"].tolist() == [1.0, -1.0, -3.0]
    assert str(notebook.names["p"].device) == "cuda:0" and str(notebook.names["g"].device) == other
    assert notebook.shell.run("p.grad = g").error is not None


@pytest.mark.parametrize("reentrant", [True, False])
def test_a_mistake_inside_of_a_checkpoint(notebook: Notebook, reentrant: bool) -> None:
    """The forward is repaired; the recomputation inside backward fails as usual, with the panel."""
    notebook.run(X + "w = torch.ones(4)\nx.requires_grad_();")
    cell = (
        "from torch.utils.checkpoint import checkpoint\n"
        f"y = checkpoint(lambda t: t * w, x, use_reentrant={reentrant})\ny.sum().backward()\n"
    )
    checked = notebook.check(cell)
    assert checked.mistakes[0] == (3, "w")
    if checked.run.error is not None:
        assert type(checked.run.error) is RuntimeError
        assert "w is on cpu" in checked.run.text
        (finding,) = checked.report.findings  # once more, in backward
        assert (finding.count, finding.repaired) == (2, False)
        assert "w was copied to cuda:0 for each call; where it could not be repaired" in checked.run.text


KEPT_FOR_BACKWARD = {
    "what a custom function has saved": (
        "class Times(torch.autograd.Function):\n    @staticmethod\n    def forward(ctx, a, b):\n"
        "        ctx.save_for_backward(a, b)\n        return a * b\n    @staticmethod\n    def backward(ctx, g):\n"
        "        one, other = ctx.saved_tensors\n        return g * other, g * one\n"
        "Times.apply(x, late).sum().backward()\n"
    ),
    "what has no name": (
        "from torch.utils.checkpoint import checkpoint\n"
        "checkpoint(lambda t: t * torch.ones(4), x, use_reentrant=False).sum().backward()\n"
    ),
}


@pytest.mark.parametrize("cell", KEPT_FOR_BACKWARD.values(), ids=KEPT_FOR_BACKWARD)
def test_what_a_repaired_call_keeps_for_backward_is_the_same_mistake(notebook: Notebook, cell: str) -> None:
    notebook.run(X + "late = torch.ones(4, requires_grad=True)\nx.requires_grad_();")
    checked = notebook.check(cell)
    assert type(checked.run.error) is RuntimeError
    assert "same device" in str(checked.run.error)
    (finding,) = checked.report.findings
    assert (finding.count, finding.repaired) == (2, False)


def test_checkpointing(notebook: Notebook) -> None:
    setup = X + "net = nn.Linear(4, 4).to(device)\n"
    notebook.run(setup)
    cell = (
        "from torch.utils.checkpoint import checkpoint\ny = checkpoint(net, x, use_reentrant=False)\n"
        "y.sum().backward()\nother = net(x) * torch.ones(4)\n"
    )
    checked = notebook.check(cell)
    assert checked.run.error is None
    assert len(checked.report.findings) == 1


@pytest.mark.parametrize(
    "guarded",
    [
        "try:\n    y = x + w\nexcept RuntimeError:\n    y = 'mine'",
        "try:\n    y = x + w\nexcept (KeyError, Exception):\n    y = 'mine'",
        "try:\n    y = x + w\nexcept:\n    y = 'mine'",
        "def add():\n    return x + w\ntry:\n    y = add()\nexcept RuntimeError:\n    y = 'mine'",
        "import contextlib\ny = 'mine'\nwith contextlib.suppress(RuntimeError):\n    y = x + w",
        "for _ in range(2):\n    try:\n        y = x + w\n    except RuntimeError:\n        y = 'mine'\n"
        "    finally:\n        z = 1",
    ],
)
def test_a_call_inside_the_users_try_is_left_alone(notebook: Notebook, guarded: str) -> None:
    notebook.run(X + "w = torch.ones(4)")
    checked = notebook.check(guarded)
    assert checked.run.error is None
    assert notebook.names["y"] == "mine"
    assert checked.report.findings == ()


@pytest.mark.parametrize(
    "unguarded",
    [
        "try:\n    y = x + w\nexcept KeyError:\n    y = 'mine'",
        "try:\n    y = x + w\nfinally:\n    z = 1",
        "try:\n    1 / 0\nexcept ZeroDivisionError:\n    y = x + w",
        "try:\n    z = 1\nexcept RuntimeError:\n    z = 2\nelse:\n    y = x + w",
        "with torch.no_grad():\n    y = x + w",
        "def f():\n    try:\n        return 1\n    except RuntimeError:\n        pass\nf()\ny = x + w",
    ],
)
def test_a_try_that_would_not_take_it_does_not_matter(notebook: Notebook, unguarded: str) -> None:
    notebook.run(X + "w = torch.ones(4)")
    checked = notebook.check(unguarded)
    assert checked.run.error is None, checked.run.text
    assert len(checked.report.findings) == 1
    assert isinstance(notebook.names["y"], torch.Tensor)


def test_optimizer_state_left_behind(notebook: Notebook) -> None:
    setup = (
        "torch.manual_seed(6)\nnet = nn.Linear(4, 2)\nx = torch.randn(3, 4)\n"
        "optimizer = torch.optim.Adam(net.parameters(), lr=0.1)\n"
        "net(x).sum().backward(); optimizer.step(); optimizer.zero_grad()\n"
        "net.to(device)\n"
    )
    cell = "net(x.to(device)).sum().backward()\noptimizer.step()\nafter = net.weight.detach().clone()\n"
    notebook.run(setup)
    checked = notebook.check(cell)
    assert checked.run.error is None, checked.run.text
    (finding,) = checked.report.findings
    assert finding.places[0].line == 3
    assert finding.diagnosis.cause == "optimizer_state"
    assert [group["foreach"] for group in notebook.names["optimizer"].param_groups] == [None]
    same_on_the_host(notebook, setup, cell)


def test_foreach_lists_move_by_position(notebook: Notebook) -> None:
    setup = X + "a = [torch.ones(4, device=device), torch.ones(4)]\nb = [torch.ones(4), torch.ones(4, device=device)]\n"
    cell = "torch._foreach_add_(a, b)\nfirst, second = a\n"
    notebook.run(setup)
    checked = notebook.check(cell)
    assert checked.run.error is None, checked.run.text
    assert [str(tensor.device) for tensor in notebook.names["a"]] == ["cuda:0", "cpu"]
    same_on_the_host(notebook, setup, cell)


def test_autocast_and_no_grad(notebook: Notebook) -> None:
    setup = X + "net = nn.Linear(4, 4)\n"
    cell = (
        "with torch.no_grad(), torch.autocast(torch.device(device).type, dtype=torch.bfloat16):\n    y = net(x)\n"
        "kind = y.dtype\ngrad = y.requires_grad\n"
    )
    notebook.run(setup)
    checked = notebook.check(cell)
    assert len(checked.report.findings) == 1
    assert notebook.names["kind"] is torch.bfloat16
    assert notebook.names["grad"] is False


def test_recursion_and_generators(notebook: Notebook) -> None:
    notebook.run(X)
    cell = (
        "def down(n):\n    return x * torch.ones(4) if n == 0 else down(n - 1) + 1\n"
        "def batches():\n    for n in range(3):\n        yield x + torch.full((4,), float(n))\n"
        "a = down(30)\nb = sum(batches())\n"
    )
    checked = notebook.check(cell)
    assert [line for line, _ in checked.mistakes] == [3, 6]
    assert checked.report.findings[1].count == 3
    same_on_the_host(notebook, X, cell)


def test_an_error_behind_the_mistake_is_the_users(notebook: Notebook) -> None:
    notebook.run(X)
    checked = notebook.check("y = x @ torch.ones(3)")
    assert type(checked.run.error) is RuntimeError
    assert "size" in str(checked.run.error)
    assert len(checked.report.findings) == 1


def test_what_is_not_there_cannot_be_repaired(notebook: Notebook) -> None:
    checked = notebook.check("a = torch.ones(3)\nb = a.to('cuda:7')\n")
    assert checked.run.error is not None
    (finding,) = checked.report.findings
    assert not finding.repaired and finding.diagnosis.failed.line == 3


def test_a_thread_is_checked_too() -> None:
    with virtual_gpus(2):
        x, found = torch.ones(3, device="cuda:0"), []

        def work() -> None:
            found.append(x + torch.ones(3))

        with ipydevice.check() as report:
            thread = threading.Thread(target=work)
            thread.start()
            thread.join()
        assert len(found) == 1
    (finding,) = report.findings
    assert finding.places[0].source == "found.append(x + torch.ones(3))"


def listeners() -> tuple[object, ...]:
    hooks = sys.modules["torch.optim.optimizer"]._global_optimizer_pre_hooks
    stack = len(_get_current_function_mode_stack())
    return (
        threading.Thread.start, threading.Thread.run, threading.excepthook, torch.nn.Module.__call__,
        warnings.showwarning, stack, len(hooks), threading.active_count(),
    )  # fmt: skip


def add_and_fail(x: torch.Tensor) -> None:
    x + torch.ones(3)
    raise ZeroDivisionError


def test_nothing_is_left_behind() -> None:
    before = listeners()
    with virtual_gpus(2):
        x = torch.ones(3, device="cuda:0")
        check = ipydevice.check()
        report = check.__enter__()
        with pytest.raises(ZeroDivisionError) as caught:
            add_and_fail(x)
        mode = torch.device("cpu")
        mode.__enter__()  # a mode that the code has left open on top of ours
        check.__exit__(caught.type, caught.value, caught.tb)
        mode.__exit__(None, None, None)
        assert len(report.findings) == 1
        assert report.error == "ZeroDivisionError"
        with pytest.raises(RuntimeError, match="same device"):
            x + torch.ones(3)
    assert listeners() == before


def test_no_tensor_is_kept() -> None:
    import gc
    import weakref

    with virtual_gpus(2):
        x, stray = torch.ones(3, device="cuda:0"), torch.ones(3)
        with ipydevice.check() as report:
            x + stray
            x.sum().item()
        kept = weakref.ref(stray), weakref.ref(x)
        del x, stray
        gc.collect()
        assert [each() for each in kept] == [None, None]
    assert len(report.findings) == 1


def test_torch_warnings_point_at_the_users_line() -> None:
    x = torch.ones((), requires_grad=True)
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        seen: list[str] = []
        warnings.showwarning = lambda message, category, filename, *rest: seen.append(filename)
        with ipydevice.check():
            float(x)
    assert seen == [__file__]


def places(error: BaseException) -> list[str]:
    """The functions of a traceback."""
    found = []
    trace: types.TracebackType | None = error.__traceback__
    while trace is not None:
        found.append(trace.tb_frame.f_code.co_name)
        trace = trace.tb_next
    return found


def wrong_sizes() -> None:
    torch.nn.functional.cross_entropy(torch.ones(2, 3), torch.ones(5, dtype=torch.long))


def test_tracebacks_have_none_of_our_frames() -> None:
    with pytest.raises(ValueError, match="batch_size") as plain:
        wrong_sizes()
    with pytest.raises(ValueError, match="batch_size") as checked, ipydevice.check():
        wrong_sizes()
    assert places(checked.value) == places(plain.value)


def test_an_error_of_a_second_attempt_is_not_chained_to_the_first() -> None:
    with virtual_gpus(1):
        x = torch.ones(3, device="cuda:0")
        with pytest.raises(RuntimeError, match="size") as caught, ipydevice.check() as report:
            x @ torch.ones(5)
    assert caught.value.__context__ is None
    assert len(report.findings) == 1


COMPILED = """
import warnings
import torch, ipydevice
warnings.simplefilter("error")
net = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.ReLU())
compiled = torch.compile(net, backend="eager")
x = torch.ones(2, 3)
before = compiled(x)
with ipydevice.check() as report:
    inside = compiled(x)
count = torch._dynamo.utils.counters["frames"]["total"]
after = compiled(x)
assert torch.equal(before, inside) and torch.equal(before, after)
assert torch._dynamo.utils.counters["frames"]["total"] == count, "compiled once more after the check"
assert report.findings == () and report.odd == ()
"""


def test_compiled_regions() -> None:
    """In a process of its own: the first torch.compile changes others (torch/_dynamo/eval_frame.py)."""
    environment = {"PYTHONPATH": str(Path(__file__).parents[2])}
    run = subprocess.run([sys.executable, "-c", COMPILED], env=environment, check=False, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
