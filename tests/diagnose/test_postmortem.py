"""The stages joined: what fails costs its own part and a note, nothing is kept alive, odd errors do no harm."""

from __future__ import annotations

import gc
import json
import weakref
from collections.abc import Callable
from typing import Any

import pytest
import torch
from failing import Notebook

from ipydevice import postmortem
from ipydevice.cells import CellHistory
from ipydevice.diagnosis import Diagnosis

KNOWN = (
    "Expected all tensors to be on the same device, but got mat2 is on cpu, different from other tensors on cuda:0 "
    "(when checking argument in method wrapper_CUDA_mm)"
)
CELLS = """
def step(x, y):
    return x * y
---
x, y = torch.ones(3, device=DEV), torch.ones(3)
---
step(x, y)
""".split("---\n")

STAGES = {
    "reading the frames": "ipydevice.diagnose.frames.collect",
    "naming the culprit": "ipydevice.diagnose.culprit.choose",
    "telling the cause": "ipydevice.diagnose.classify",
    "looking for fixes": "ipydevice.fixes.propose",
    "listing the frames": "ipydevice.diagnose.table.rows_of",
}


def breaks(*args: Any, **kwargs: Any) -> Any:
    raise ZeroDivisionError("ours")


def examined(notebook: Notebook) -> Diagnosis:
    assert notebook.error is not None
    begun = postmortem.begin(notebook.error, notebook.history, notebook.shell.names)
    assert begun is not None
    assert begun.headline
    return begun.finish()


@pytest.mark.parametrize("stage", STAGES)
def test_a_stage_that_fails(stage: str, notebook: Notebook, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("IPYDEVICE_DEBUG", raising=False)
    notebook.run(*CELLS)
    monkeypatch.setattr(STAGES[stage], breaks)
    diagnosis = examined(notebook)
    assert f"ipydevice failed while {stage} (ZeroDivisionError); the rest stands" in diagnosis.notes
    assert diagnosis.devices == ("cuda:0", "cpu")
    json.dumps(diagnosis.to_dict())
    if stage in ("looking for fixes", "listing the frames"):
        assert diagnosis.headline == "y is on cpu, x is on cuda:0"
        assert bool(diagnosis.fixes) is (stage == "listing the frames")
        assert bool(diagnosis.placements) is (stage == "looking for fixes")


def test_several_stages_that_fail(notebook: Notebook, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("IPYDEVICE_DEBUG", raising=False)
    notebook.run(*CELLS)
    for name in STAGES.values():
        monkeypatch.setattr(name, breaks)
    diagnosis = examined(notebook)
    assert diagnosis.message == str(notebook.error).split("\n")[0] or diagnosis.message in str(notebook.error)
    assert sum("ipydevice failed" in note for note in diagnosis.notes) >= 1


@pytest.mark.parametrize("stage", STAGES)
def test_debug_raises(stage: str, notebook: Notebook, monkeypatch: pytest.MonkeyPatch) -> None:
    notebook.run(*CELLS)
    monkeypatch.setenv("IPYDEVICE_DEBUG", "1")
    monkeypatch.setattr(STAGES[stage], breaks)
    with pytest.raises(ZeroDivisionError, match="ours"):
        examined(notebook)


def test_whole(notebook: Notebook) -> None:
    notebook.run(*CELLS)
    diagnosis = examined(notebook)
    assert diagnosis.headline == "y is on cpu, x is on cuda:0"
    assert diagnosis.cause == "label_not_moved" and not diagnosis.notes
    assert diagnosis.culprit is not None and diagnosis.culprit.place.cell == 3
    assert diagnosis.origin is not None and diagnosis.origin.cell == 2
    assert diagnosis.failed.cell == 1 and diagnosis.failed.function == "step"
    assert diagnosis.fixes and diagnosis.placements


# Nothing is kept alive ----------------------------------------------------------------------------


class Tracked:
    """Something a weak reference can point to, beside the tensors of a frame."""


def failing() -> tuple[BaseException, Callable[[], Any]]:
    tracked, y = Tracked(), torch.ones(3)
    x = torch.ones(3, device="cuda:0")
    x.tracked = tracked  # type: ignore[attr-defined]
    tracked = weakref.ref(tracked)  # type: ignore[assignment]
    try:
        x * y
    except RuntimeError as error:
        return error, tracked  # type: ignore[return-value]
    raise AssertionError("no error")


@pytest.mark.parametrize("finished", [True, False])
def test_nothing_is_kept_alive(cards: None, finished: bool) -> None:
    error, tracked = failing()
    begun = postmortem.begin(error, CellHistory(), {})
    assert begun is not None
    diagnosis = begun.finish() if finished else None
    assert begun.finding is None or not finished
    if not finished:
        del begun
    del error
    gc.collect()
    assert tracked() is None
    assert diagnosis is None or diagnosis.headline


@pytest.mark.parametrize("stage", STAGES)
def test_nothing_is_kept_alive_after_a_stage_failed(cards: None, stage: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("IPYDEVICE_DEBUG", raising=False)
    monkeypatch.setattr(STAGES[stage], breaks)
    error, tracked = failing()
    begun = postmortem.begin(error, CellHistory(), {})
    assert begun is not None
    diagnosis = begun.finish()
    del error
    gc.collect()
    assert tracked() is None
    assert diagnosis.notes


def test_the_error_is_left_as_it_was(cards: None) -> None:
    error, _ = failing()
    before = error.args, error.__traceback__, error.__cause__, error.__context__, dict(error.__dict__)
    begun = postmortem.begin(error, CellHistory(), {})
    assert begun is not None
    begun.finish()
    assert (error.args, error.__traceback__, error.__cause__, error.__context__, dict(error.__dict__)) == before


# Errors without much to look at -------------------------------------------------------------------


def test_an_error_that_is_text_alone() -> None:
    begun = postmortem.begin(RuntimeError(KNOWN))
    assert begun is not None
    diagnosis = begun.finish()
    assert begun.headline == diagnosis.headline
    assert "mat2" in diagnosis.headline and "cpu" in diagnosis.headline
    assert diagnosis.culprit is None and diagnosis.fixes == () and diagnosis.cause == "unknown"


def test_an_error_without_frames_of_the_user() -> None:
    import threading

    raised: list[BaseException] = []
    hook, threading.excepthook = threading.excepthook, lambda args: raised.append(args.exc_value)  # type: ignore[arg-type]
    try:
        thread = threading.Thread(target=torch.zeros(3, device="meta").numpy)
        thread.start()
        thread.join()
    finally:
        threading.excepthook = hook
    begun = postmortem.begin(raised[0])
    diagnosis = begun.finish() if begun is not None else None
    assert diagnosis is None or (diagnosis.culprit is None and diagnosis.headline)


class StrangeError(RuntimeError):
    """Its text cannot be had."""

    def __str__(self) -> str:
        raise ValueError("no text")


class OwnTextError(RuntimeError):
    def __str__(self) -> str:
        return KNOWN


class OwnBase(BaseException): ...


def chained(outer: BaseException, inner: BaseException) -> BaseException:
    outer.__cause__ = inner
    return outer


def loop() -> BaseException:
    one, two = ValueError("a"), ValueError("b")
    one.__context__, two.__context__ = two, one
    return one


ODD: dict[str, tuple[BaseException, bool]] = {
    "no arguments": (RuntimeError(), False),
    "an argument that is no text": (RuntimeError(3), False),
    "several arguments": (RuntimeError(KNOWN, 3), True),
    "its text raises": (StrangeError(KNOWN), False),
    "a text of its own": (OwnTextError(), True),
    "a very long text": (RuntimeError("x" * 1_000_000), False),
    "the text in the middle": (RuntimeError("while training:\n" + KNOWN + "\nbye"), True),
    "a plain BaseException": (OwnBase(KNOWN), True),
    "Ctrl-C": (KeyboardInterrupt(), False),
    "an exit": (SystemExit(1), False),
    "a circle": (loop(), False),
    "a cause": (chained(ValueError("outer"), RuntimeError(KNOWN)), True),
    "a group": (ExceptionGroup("several", [ValueError("a"), RuntimeError(KNOWN)]), True),
    "a base group": (BaseExceptionGroup("several", [KeyboardInterrupt(), RuntimeError(KNOWN)]), True),
    "a group in a group": (ExceptionGroup("a", [ExceptionGroup("b", [RuntimeError(KNOWN)])]), True),
    "a syntax error": (SyntaxError("cpu and cuda:0", ("f.py", 1, 1, "x")), False),
}


@pytest.mark.parametrize("name", ODD)
def test_odd_exceptions(name: str) -> None:
    error, is_ours = ODD[name]
    begun = postmortem.begin(error)
    if name in ("a plain BaseException",):  # either is right: nobody raises device errors so
        assert begun is None or begun.finish().headline
        return
    assert (begun is not None) is is_ours
    if begun is not None:
        assert begun.finish().devices == ("cpu", "cuda:0")


def test_a_very_deep_traceback(notebook: Notebook) -> None:
    notebook.run(
        "def down(n, x, y):\n    return down(n - 1, x, y) if n else x * y",
        "x, y = torch.ones(3, device=DEV), torch.ones(3)",
        "down(400, x, y)",
    )
    diagnosis = examined(notebook)
    assert diagnosis.headline == "y is on cpu, x is on cuda:0"
    assert [row.name for row in diagnosis.placements].count("x") == 2  # in down(), once, and in the cell


def test_nothing_of_the_users_runs(notebook: Notebook) -> None:
    """The whole way, with hostile objects as locals, in the workspace and inside what meets."""
    import hostile

    counter = hostile.Counter()
    objects = dict(list(hostile.corpus(counter)))
    kept = [live for name, live in objects.items() if name.startswith(("all of", "metaclass"))]
    notebook.shell.names.update(kept=kept, h0=kept[0])
    notebook.run(
        "def step(x, y, *rest, **named):\n    here = rest[0]\n    return x * y",
        "x, y = torch.ones(3, device=DEV), torch.ones(3)",
        "step(x, y, *kept, h0=h0, xs=kept)",
    )
    history = notebook.history
    with hostile.armed(counter):
        begun = postmortem.begin(notebook.error, history, notebook.shell.names)  # type: ignore[arg-type]
        assert begun is not None
        diagnosis = begun.finish()
    assert not counter.ran
    assert not diagnosis.notes
    assert diagnosis.headline == "y is on cpu, x is on cuda:0"
