"""Tracebacks as the versions of IPython print them."""

from __future__ import annotations

import re
import sys

import pytest

from ipydevice.messages import recognise
from ipydevice.messages.mismatch import TextFrame

MESSAGE = (
    "Expected all tensors to be on the same device, but got target is on cpu, different from other tensors on cuda:0 "
    "(when checking argument in method wrapper_CUDA_nll_loss_forward)"
)
RULE = "-" * 75 + "\nRuntimeError                              Traceback (most recent call last)\n"
NINE = f"""{RULE}Cell In[7], line 5
      3 images = images.to(device)
      4 logits = model(images)
----> 5 loss = step(logits, labels)

Cell In[4], line 2, in step(logits, labels)
      1 def step(logits, labels):
----> 2     return F.cross_entropy(logits, labels)

File ~/lib/python3.12/site-packages/torch/nn/functional.py:3029, in cross_entropy(input, target, weight)
   3027     reduction = legacy(size_average, reduce)
-> 3029 return torch._C._nn.cross_entropy_loss(
   3030     input,
   3031 )

RuntimeError: {MESSAGE}"""
EIGHT_ZERO = f"""{RULE}Input In [7], in <cell line: 2>()
      1 x = 1
----> 2 loss = step(logits, labels)

RuntimeError: {MESSAGE}"""
SEVEN = f"""{RULE}<ipython-input-7-0a1b2c3d4e5f> in <module>()
      1 x = 1
----> 2 loss = step(logits, labels)

/usr/local/lib/python3.7/dist-packages/torch/nn/functional.py in cross_entropy(input, target)
   2844         reduction = legacy(size_average, reduce)
-> 2846     return torch._C._nn.cross_entropy_loss(input, target)

RuntimeError: {MESSAGE}"""


@pytest.mark.parametrize(
    ("text", "frames"),
    [
        (
            NINE,
            (
                TextFrame("In [7]", 5, "<module>", "loss = step(logits, labels)"),
                TextFrame("In [4]", 2, "step", "return F.cross_entropy(logits, labels)"),
                TextFrame(
                    "~/lib/python3.12/site-packages/torch/nn/functional.py",
                    3029,
                    "cross_entropy",
                    "return torch._C._nn.cross_entropy_loss(",
                ),
            ),
        ),
        (EIGHT_ZERO, (TextFrame("In [7]", 2, "<module>", "loss = step(logits, labels)"),)),
        (
            SEVEN,
            (
                TextFrame("In [7]", 2, "<module>", "loss = step(logits, labels)"),
                TextFrame(
                    "/usr/local/lib/python3.7/dist-packages/torch/nn/functional.py",
                    2846,
                    "cross_entropy",
                    "return torch._C._nn.cross_entropy_loss(input, target)",
                ),
            ),
        ),
    ],
    ids=["9", "8.0", "7"],
)
def test_frames_of_a_printed_traceback(text: str, frames: tuple[TextFrame, ...]) -> None:
    mismatch = recognise(RuntimeError(text))
    assert mismatch is not None
    assert (mismatch.id, mismatch.argument) == ("PT001", "target")
    assert mismatch.frames == frames


def test_printed_traceback_of_another_error_is_none() -> None:
    other = NINE.replace(MESSAGE, "mat1 and mat2 shapes cannot be multiplied (2x3 and 2x3)").replace(
        "model(images)", "model(images.to('cpu'))"
    )
    assert recognise(RuntimeError(other)) is None


def test_traceback_of_the_installed_ipython() -> None:
    ultratb = pytest.importorskip("IPython.core.ultratb")
    try:
        raise RuntimeError(MESSAGE)
    except RuntimeError:
        printed = ultratb.VerboseTB(include_vars=False).text(*sys.exc_info())
    mismatch = recognise(RuntimeError(printed))
    assert mismatch is not None
    assert mismatch.id == "PT001"
    assert [(frame.function, frame.source) for frame in mismatch.frames] == [
        ("test_traceback_of_the_installed_ipython", "raise RuntimeError(MESSAGE)")
    ]
    assert re.search(r"test_ipython_text\.py$", mismatch.frames[0].file)
