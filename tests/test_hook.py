"""The hook in real shells and a real kernel: the panel comes, and the user's error stays what it was."""

from __future__ import annotations

import gc
import io
import re
import sys
import threading
import weakref
from pathlib import Path
from typing import Any

import pytest
from IPython import version_info
from shells import Kernel, KernelRun, Run, Shell

from ipydevice import hook
from ipydevice.diagnosis import MIME_TYPE, Diagnosis

SETUP = """
import torch, ipydevice
import torch.nn.functional as F
gpus = ipydevice.virtual_gpus(1).enable()
logits = torch.zeros(4, 3, device="cuda:0")
labels = torch.zeros(4, dtype=torch.int64)
def loss_of(logits, labels):
    return F.cross_entropy(logits, labels)
"""
FAIL = "loss = F.cross_entropy(logits, labels)"
HEADLINE = "labels is on cpu, logits is on cuda:0"
TITLE = f"✗ {HEADLINE}"
ERROR = "RuntimeError: Expected all tensors to be on the same device"

SHOWS_NOTES = version_info[:2] >= (8, 14)


@pytest.fixture
def loaded(shell: Shell) -> Any:
    """A shell with the extension, a virtual GPU and something to fail with."""
    assert shell.run("%load_ext ipydevice").error is None
    assert shell.run(SETUP).error is None
    yield shell
    shell.run("gpus.disable()")


def quiet_lines(run: Run) -> list[str]:
    return [line for line in run.text.splitlines() if line.startswith("ipydevice:")]


def test_the_panel_stands_under_the_traceback(loaded: Shell) -> None:
    run = loaded.run(FAIL)
    assert type(run.error) is RuntimeError
    assert run.text.count(ERROR) == 1
    assert run.text.count(TITLE) == 1
    assert run.text.count(HEADLINE) == 2  # once as the note, once as the title
    assert run.text.index("Traceback") < run.text.index(ERROR) < run.text.index(HEADLINE) < run.text.index(TITLE)
    assert not quiet_lines(run)


def test_an_error_of_another_kind_is_left_alone(loaded: Shell) -> None:
    with_us = loaded.run("1 / 0")
    assert "✗" not in with_us.text
    assert with_us.error is not None
    assert not getattr(with_us.error, "__notes__", None)
    assert not with_us.error.__dict__


@pytest.mark.parametrize(
    "cell", ["torch.zeros(2) @ torch.zeros(3)", "torch.zeros(2).relu(", "raise ValueError('cpu cuda')"]
)
def test_an_error_of_torch_that_is_no_device_error_gets_no_panel(loaded: Shell, cell: str) -> None:
    run = loaded.run(cell)
    assert run.error is not None
    assert "✗" not in run.text
    assert not quiet_lines(run)


def test_what_we_change_on_an_exception(loaded: Shell) -> None:
    error = loaded.run(FAIL).error
    assert error is not None
    assert error.__notes__ == [HEADLINE]
    assert [type(part) for part in error.__dict__.pop("_ipydevice")] == [int, int]
    assert set(error.__dict__) == {"__notes__"}


CAUGHT = """
def caught():
    try:
        loss_of(logits, labels)
    except RuntimeError as error:
        return error
"""
FROM = """
try:
    loss_of(logits, labels)
except RuntimeError as error:
    raise ValueError("training failed") from error
"""
CONTEXT = """
try:
    loss_of(logits, labels)
except RuntimeError:
    raise KeyError("training")
"""


@pytest.mark.parametrize(
    "cell",
    [
        "loss_of(logits, labels)",
        "await __import__('asyncio').sleep(0)\nloss_of(logits, labels)",
        "%%time\nx = 1\nloss = loss_of(logits, labels)",
        "%%timeit -n1 -r1\nloss_of(logits, labels)",
        "[loss_of(logits, labels) for _ in range(1)]",
        FROM,
        CONTEXT,
        "raise ExceptionGroup('workers', [ValueError('x'), caught()])",
    ],
    ids=["function", "async", "time", "timeit", "comprehension", "from", "context", "group"],
)
def test_wherever_it_comes_from(loaded: Shell, cell: str) -> None:
    loaded.run(CAUGHT)
    run = loaded.run(cell)
    assert run.text.count("✗ ") == 1
    assert "labels is on cpu" in run.text
    assert run.text.index("Traceback") < run.text.index("✗ ")
    assert not quiet_lines(run)


def test_from_a_script(loaded: Shell, tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(FAIL + "\n")
    run = loaded.run(f"%run -i {script}")
    assert run.text.count(TITLE) == 1
    assert "train.py" in run.text


def test_swallowed_by_capture_it_can_be_shown_afterwards(loaded: Shell) -> None:
    assert TITLE not in loaded.run(f"%%capture\n{FAIL}").text
    assert TITLE in loaded.run("%devicefix").text


IN_A_THREAD = """
import threading
thread = threading.Thread(target=loss_of, args=(logits, labels))
thread.start()
thread.join()
"""


def test_from_a_thread(shell: Shell) -> None:
    threading.excepthook = threading.__excepthook__  # pytest puts its own there
    shell.run("%load_ext ipydevice")
    shell.run(SETUP)
    run = shell.run(IN_A_THREAD)
    assert run.text.count(ERROR) == 1
    assert run.text.count(HEADLINE) == 1
    assert "%devicefix" in run.text
    assert TITLE in shell.run("%devicefix").text
    shell.run("gpus.disable()")


def test_tb_shows_the_traceback_again_and_no_second_panel(loaded: Shell) -> None:
    loaded.run(FAIL)
    again = loaded.run("%tb")
    assert ERROR in again.text
    assert TITLE not in again.text


@pytest.mark.parametrize("mode", ["Plain", "Context", "Verbose", "Minimal"])
def test_in_every_mode(loaded: Shell, mode: str) -> None:
    loaded.run(f"%xmode {mode}")
    run = loaded.run(FAIL)
    assert ERROR in run.text
    assert run.text.count(HEADLINE) == 2
    assert run.text.count(TITLE) == 1


def debug(shell: Shell, monkeypatch: pytest.MonkeyPatch, *commands: str) -> str:
    monkeypatch.setattr(sys, "stdin", io.StringIO("\n".join([*commands, "q", ""])))
    return shell.run("%debug").text


def test_debug_stands_where_it_would_without_us(loaded: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    loaded.run("def step(x, y):\n    return x * y")
    loaded.run("step(logits, torch.zeros(4, 3))")
    said = debug(loaded, monkeypatch, "p 'y is', y.device", "where")
    assert "('y is', device(type='cpu'))" in said
    assert "ipydevice" not in said


def test_no_frame_of_a_virtual_gpu_is_left(loaded: Shell) -> None:
    loaded.run(FAIL)
    link = sys.last_traceback
    while link is not None:
        assert "ipydevice" not in link.tb_frame.f_code.co_filename
        link = link.tb_next


def test_who_replaces_showtraceback_keeps_us(loaded: Shell) -> None:
    loaded.ip.showtraceback = lambda *_args, **_kwargs: print("somebody else's traceback")
    run = loaded.run(FAIL)
    assert run.text.index("somebody else's traceback") < run.text.index(TITLE)
    assert run.text.count(TITLE) == 1


def test_who_takes_every_exception_keeps_us(loaded: Shell) -> None:
    def handler(shell: Any, etype: Any, value: Any, tb: Any, tb_offset: Any = None) -> None:
        shell.showtraceback((etype, value, tb), tb_offset=tb_offset)

    loaded.ip.set_custom_exc((BaseException,), handler)
    run = loaded.run(FAIL)
    assert run.text.count(TITLE) == 1
    assert run.text.count(ERROR) == 1


def test_raised_again_by_a_later_cell_it_is_a_new_failure(loaded: Shell) -> None:
    loaded.run("try:\n    loss_of(logits, labels)\nexcept RuntimeError as error:\n    kept = error")
    first, second = loaded.run("raise kept"), loaded.run("raise kept")
    assert first.text.count("✗ ") == second.text.count("✗ ") == 1
    assert second.error is not None
    assert len(second.error.__notes__) == 1


def test_the_last_of_two_errors_is_the_one_to_fix(loaded: Shell) -> None:
    loaded.run(FAIL)
    loaded.run("other = torch.zeros(3)\nlogits + other")
    assert "✗ other is on cpu" in loaded.run("%devicefix").text


FROZEN = """
import dataclasses

@dataclasses.dataclass(frozen=True)
class Frozen(Exception):
    step: int

def fail():
    try:
        loss_of(logits, labels)
    except RuntimeError as error:
        raise Frozen(3) from error
"""


def test_an_exception_that_takes_no_note(loaded: Shell) -> None:
    loaded.run(FROZEN)
    run = loaded.run("fail()")
    assert "Frozen" in run.text
    assert run.text.count("✗ ") == 1
    (line,) = quiet_lines(run)
    assert line.startswith("ipydevice: putting the headline on the error failed")


def numberless(traceback: str) -> str:
    """A traceback of a cell, whatever its number."""
    return re.sub(r"(In ?\[|ipython-input-)\d+", r"\1", traceback)


STAGES = {
    "hiding the frames of virtual GPUs": "ipydevice.virtual.trim_traceback",
    "recognising the error": "ipydevice.messages.find",
    "writing the headline": "ipydevice.postmortem.PostMortem.headline",
    "diagnosing the error": "ipydevice.postmortem.PostMortem.finish",
    "showing the panel": "ipydevice.show.display_after_error",
}


@pytest.mark.parametrize(
    "wrong", [RuntimeError("ours"), KeyboardInterrupt(), RecursionError()], ids=lambda e: type(e).__name__
)
@pytest.mark.parametrize("stage", STAGES)
def test_a_stage_that_fails_costs_one_line(
    loaded: Shell, monkeypatch: pytest.MonkeyPatch, stage: str, wrong: BaseException
) -> None:
    plain = loaded.run(FAIL).text

    def fail(*_args: Any, **_kwargs: Any) -> None:
        raise wrong

    monkeypatch.setattr(STAGES[stage], property(fail) if stage == "writing the headline" else fail)
    run = loaded.run(FAIL)
    assert type(run.error) is RuntimeError
    assert wrong is not run.error
    if stage != "hiding the frames of virtual GPUs":  # then there is one frame more
        assert numberless(run.text.partition(ERROR)[0]) == numberless(plain.partition(ERROR)[0])
    assert run.text.count(ERROR) == 1
    (line,) = quiet_lines(run)
    assert line.startswith(f"ipydevice: {stage} failed")
    assert type(wrong).__name__ in line
    assert "Traceback" not in run.text.split(ERROR)[1]


def test_for_tests_a_failing_stage_can_be_raised(loaded: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_args: Any) -> None:
        raise LookupError("ours")

    monkeypatch.setenv("IPYDEVICE_DEBUG", "1")
    monkeypatch.setattr("ipydevice.show.display_after_error", fail)
    try:
        loaded.names["loss_of"](loaded.names["logits"], loaded.names["labels"])
    except RuntimeError:
        with pytest.raises(LookupError, match="ours"):
            loaded.ip.showtraceback()


def test_a_torch_that_is_too_old_is_told_once(loaded: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    monkeypatch.setattr(torch, "__version__", "2.3.1")
    first, second = loaded.run(FAIL), loaded.run(FAIL)
    assert "ipydevice needs PyTorch 2.4 or newer, and this is 2.3.1" in first.text
    assert "ipydevice needs" not in second.text
    assert ERROR in first.text
    assert ERROR in second.text


def test_loaded_after_the_error(shell: Shell) -> None:
    shell.run(SETUP)
    shell.run("x = 1")
    shell.run(FAIL)
    said = shell.run("%load_ext ipydevice").text
    assert said.strip().splitlines() == [
        "The last error is a device error: %devicefix shows where it comes from and how to fix it."
    ]
    panel = shell.run("%devicefix").text
    assert TITLE in panel
    assert "In [3], line 1" in panel
    assert "✗" not in shell.run("gpus.disable()").text


def test_loaded_after_another_error_it_tells_that_only_the_last_is_seen(shell: Shell) -> None:
    shell.run(SETUP)
    shell.run(FAIL)
    shell.run("undefined")
    assert shell.run("%load_ext ipydevice").text == ""
    said = shell.run("%devicefix").text
    assert "The last error before ipydevice was loaded is a NameError, not a device error" in said
    assert "an earlier one cannot be seen any more: run its cell again" in said
    shell.run("gpus.disable()")


class TestAskedLater:
    """The cell that failed is the one in which the traceback starts, not the one that asks."""

    def reruns(self, diagnosis: Diagnosis) -> list[list[int | None]]:
        return [[again.cell for again in fix.rerun] for fix in diagnosis.fixes if fix.rerun]

    def last(self, shell: Shell) -> Diagnosis:
        hung = hook.of(shell.ip)
        assert hung is not None
        assert hung.last is not None
        return hung.last

    def test_loaded_after_the_error(self, shell: Shell) -> None:
        shell.run(SETUP)
        shell.run("m = torch.nn.Linear(3, 2)")
        shell.run("m(logits)")
        shell.run("%load_ext ipydevice")
        assert "re-runs In [2], In [3]" in shell.run("%devicefix").text
        assert all(cells[-1] == 3 for cells in self.reruns(self.last(shell)))
        shell.run("gpus.disable()")

    def test_the_numbers_stay_those_of_the_panel(self, shell: Shell) -> None:
        shell.run(SETUP)
        shell.run("m = torch.nn.Linear(3, 2)")
        shell.run("m(logits)")
        shell.run("%load_ext ipydevice")
        shell.run("%devicefix")
        second = shell.run("%devicefix 2").text
        assert shell.run("m.to('cuda:0')\nm(logits)").error is None
        assert shell.run("%devicefix 2").text == second
        shell.run("gpus.disable()")

    def test_an_error_in_a_thread(self, loaded: Shell) -> None:
        loaded.run("def work():\n    m = torch.nn.Linear(3, 2)\n    go.wait()\n    m(logits)")
        loaded.run("import threading\ngo = threading.Event()\nt = threading.Thread(target=work)\nt.start()")
        loaded.run("go.set()\nt.join()")
        assert self.reruns(self.last(loaded))[0] == [3, 4]
        loaded.run("%devicefix")
        assert self.reruns(self.last(loaded))[0] == [3, 4]

    def test_a_lambda_in_a_thread(self, loaded: Shell) -> None:
        loaded.run("m = torch.nn.Linear(3, 2)")
        loaded.run("work = lambda: m(logits)")
        loaded.run("import threading\nt = threading.Thread(target=work)\nt.start()\nt.join()")
        assert self.reruns(self.last(loaded))[0] == [3, 5]

    def test_explained_in_a_later_cell(self, loaded: Shell) -> None:
        loaded.run("m = torch.nn.Linear(3, 2)")
        loaded.run("%devices")
        loaded.run("try:\n    m(logits)\nexcept RuntimeError as error:\n    caught = error")
        loaded.run("d = ipydevice.explain(caught)")
        assert self.reruns(loaded.names["d"])[0] == [3, 5]
        assert str(loaded.names["d"]).startswith("✗ m is on cpu")
        assert loaded.run("raise caught").text.count("✗ m is on cpu") == 1

    def test_explained_where_it_is_caught(self, loaded: Shell) -> None:
        run = loaded.run(
            "try:\n    loss_of(logits, labels)\nexcept RuntimeError as e:\n    ipydevice.explain(e)\n    raise"
        )
        assert run.text.count(TITLE) == 1
        assert run.text.count(HEADLINE) == 2
        assert all(cells[-1] == 3 for cells in self.reruns(self.last(loaded)))


def test_unloaded_it_does_nothing(loaded: Shell) -> None:
    loaded.run("%unload_ext ipydevice")
    run = loaded.run(FAIL)
    assert ERROR in run.text
    assert HEADLINE not in run.text


def test_explain_is_the_panel_of_the_last_error(loaded: Shell) -> None:
    loaded.run(FAIL)
    loaded.run("d = ipydevice.explain()")
    d = loaded.names["d"]
    assert d.headline == HEADLINE
    assert (d.failed.cell, d.failed.line) == (3, 1)


def test_nothing_of_ours_holds_a_tensor(loaded: Shell) -> None:
    import torch

    loaded.run(
        "def step():\n    activations = torch.zeros(1000, 1000, device='cuda:0')\n"
        "    probe(activations)\n    return activations + torch.zeros(1000, 1000)"
    )
    watched: list[weakref.ref[Any]] = []
    loaded.names["probe"] = lambda tensor: watched.append(weakref.ref(tensor))
    run = loaded.run("step()")
    assert "✗ " in run.text
    run.error = None
    gc.collect()
    (tensor,) = watched
    assert isinstance(tensor(), torch.Tensor), "IPython itself should hold the failed cell's tensors here"
    loaded.run("%devicefix --forget")
    assert tensor() is None


@pytest.fixture(scope="module")
def failed(kernel: Kernel) -> KernelRun:
    """A cell that failed in a notebook."""
    kernel.run("%load_ext ipydevice")
    kernel.run(SETUP)
    return kernel.run(FAIL, cell_id="the-cell")


class TestInAKernel:
    """The same in the process and protocol of notebooks."""

    def test_traceback_then_panel(self, failed: KernelRun) -> None:
        assert failed.status == "error"
        assert ERROR in failed.traceback
        assert failed.kinds.index("error") < failed.kinds.index("display_data")
        (panel,) = failed.shown(MIME_TYPE)
        assert panel["headline"] == HEADLINE
        assert TITLE in failed.text
        assert "<" in failed.shown("text/html")[0]

    def test_the_headline_is_read_with_the_traceback(self, failed: KernelRun) -> None:
        assert (HEADLINE in failed.traceback) == SHOWS_NOTES
        assert failed.traceback.count(HEADLINE) + failed.text.count(HEADLINE) == 2

    def test_the_panel_knows_its_cell(self, failed: KernelRun) -> None:
        (panel,) = failed.shown(MIME_TYPE)
        assert panel["failed"]["cell"] == failed.number
        assert panel["failed"]["cell_source"] == FAIL
        if version_info[0] >= 8:
            assert panel["failed"]["cell_id"] == "the-cell"

    def test_devicefix_puts_the_fix_into_the_next_cell(self, failed: KernelRun, kernel: Kernel) -> None:
        run = kernel.run("%devicefix 1")
        assert run.status == "ok"
        (payload,) = [part for part in run.payload if part["source"] == "set_next_input"]
        assert payload["text"].strip() in run.text
        assert "labels" in payload["text"]


def test_a_headline_that_the_message_says_itself_is_no_note(shell: Shell) -> None:
    """Without an accelerator nothing is stray: traceback, note and title would say the same three times."""
    shell.run("%load_ext ipydevice\nimport torch")
    run = shell.run("torch.ones(3, device='xpu')")
    assert run.error is not None
    assert not getattr(run.error, "__notes__", None)
    assert run.text.count("Torch not compiled with XPU enabled") <= 3  # traceback's frame, its last line, title
    assert "✗ Torch not compiled with XPU enabled" in run.text


def test_the_title_of_a_message_that_fills_a_page_is_its_first_sentence(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    shell.run("%load_ext ipydevice\nimport torch")
    run = shell.run("torch.ones(3, device='mps')")
    title = run.text[run.text.index("✗") :].splitlines()[0]
    assert title == "✗ Could not run 'aten::empty.memory_format' with arguments from the 'MPS' backend"
