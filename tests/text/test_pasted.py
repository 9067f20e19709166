"""Error texts in every shape in which people paste, log and save them, through the whole pipeline, with nothing alive.

Each file in `pasted` has its panel beside it; IPYDEVICE_REGEN=1 rewrites the panels.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ipydevice import postmortem, printing, text_traceback
from ipydevice.diagnosis import Diagnosis

PASTED = sorted((Path(__file__).parent / "pasted").glob("*.txt"))
# Shapes that show the whole way to the line; each of them is of the same program.
SAME = ["ipython_context", "ipython_verbose", "ipython_coloured", "rich"]


def diagnoses(path: Path) -> list[Diagnosis]:
    text = path.read_text(encoding="utf-8")
    printed = text_traceback.read(text) or [text_traceback.PastedError("RuntimeError", text.strip())]
    found = [postmortem.explain_printed(error) for error in printed]
    return [diagnosis for diagnosis in found if diagnosis is not None]


@pytest.mark.parametrize("path", PASTED, ids=lambda path: path.stem)
def test_panel(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    said = "\n\n".join(printing.panel(diagnosis, color=False) for diagnosis in diagnoses(path)) + "\n"
    golden = path.with_suffix(".panel")
    if os.environ.get("IPYDEVICE_REGEN"):
        golden.write_text(said, encoding="utf-8")
    assert said == golden.read_text(encoding="utf-8")


@pytest.mark.parametrize("name", SAME)
def test_the_same_culprit_in_each_shape(name: str) -> None:
    (diagnosis,) = diagnoses(Path(__file__).parent / "pasted" / f"{name}.txt")
    assert diagnosis.culprit is not None
    assert (diagnosis.culprit.expression, diagnosis.culprit.device) == ("mask", "cpu")
    assert diagnosis.failed.source == "return self.fc(x * mask)"
    assert diagnosis.cause == "fresh_tensor_no_device"
    assert diagnosis.confidence == "likely"  # text is never certain


def test_each_rank_is_named_once() -> None:
    (error,) = text_traceback.read((Path(__file__).parent / "pasted" / "torchrun.txt").read_text())
    assert error.seen_by == ("rank 0", "rank 1")


def test_a_cause_is_the_error_that_is_explained() -> None:
    (diagnosis,) = diagnoses(Path(__file__).parent / "pasted" / "chained.txt")
    assert diagnosis.failed.source == "self.total = self.total + hits"


def test_ordinary_errors_and_prose_are_not_explained() -> None:
    text = (
        'Traceback (most recent call last):\n  File "a.py", line 3, in <module>\n    1 / 0\nZeroDivisionError: zero\n'
    )
    (error,) = text_traceback.read(text)
    assert postmortem.explain_printed(error) is None
    assert text_traceback.read("I moved the model in the end, and File 3 was lost: all is well.\nNo Error: none") == []


@pytest.mark.parametrize(
    "text", ["", "\n\n", "Traceback (most recent call last):", "│ ╭", "File", "----> ", "\x1b[31m", ">"]
)
def test_odd_texts_give_nothing(text: str) -> None:
    assert text_traceback.read(text) == []


def test_nothing_of_the_text_is_run(tmp_path: Path) -> None:
    proof = tmp_path / "proof"
    line = f"x = torch.ones(3, device='cuda') + open({str(proof)!r}, 'w').write('ran')"
    text = (
        f'Traceback (most recent call last):\n  File "a.py", line 3, in <module>\n    {line}\n'
        "RuntimeError: Expected all tensors to be on the same device, but found at least two devices, cuda:0 and cpu!\n"
    )
    (error,) = text_traceback.read(text)
    assert postmortem.explain_printed(error) is not None
    assert not proof.exists()
