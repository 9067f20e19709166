"""Texts that bring a traceback along: who wraps it, the frames, the message inside."""

from __future__ import annotations

import concurrent.futures
import multiprocessing
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch._utils import ExceptionWrapper
from torch.utils.data import DataLoader, Dataset

from ipydevice.messages import Mismatch, find, recognise
from ipydevice.messages.mismatch import TextFrame


def mixed(_: Any = None) -> torch.Tensor:
    return torch.ones(2) + torch.ones(2, device="meta")


class Mixed(Dataset[torch.Tensor]):
    def __len__(self) -> int:
        return 2

    def __getitem__(self, index: int) -> torch.Tensor:
        return mixed()


@torch.jit.script
def scripted(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    z = x * 2
    return z + y


@torch.compile(backend="eager")
def compiled(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return x + y


def raised(call: Callable[[], Any]) -> Exception:
    with pytest.raises(Exception) as caught:  # noqa: PT011
        call()
    return caught.value


def said(call: Callable[[], Any]) -> Mismatch:
    mismatch = recognise(raised(call))
    assert mismatch is not None
    return mismatch


def own(frames: tuple[TextFrame, ...]) -> list[tuple[str, str]]:
    return [(frame.function, frame.source) for frame in frames if frame.file == __file__]


def test_loader_worker() -> None:
    mismatch = said(lambda: next(iter(DataLoader(Mixed(), num_workers=1))))
    assert mismatch.wrapped_in == "DataLoader worker process 0"
    assert mismatch.devices == ("meta", "cpu")
    assert own(mismatch.frames) == [
        ("__getitem__", "return mixed()"),
        ("mixed", 'return torch.ones(2) + torch.ones(2, device="meta")'),
    ]
    assert "_worker_loop" in {frame.function for frame in mismatch.frames}


def test_replica() -> None:
    def call() -> None:
        try:
            mixed()
        except RuntimeError:
            wrapper = ExceptionWrapper(where="in replica 1 on device 1")
        wrapper.reraise()

    mismatch = said(call)
    assert mismatch.wrapped_in == "replica 1 on device 1"
    assert mismatch.devices == ("meta", "cpu")  # not the device of the replica
    assert own(mismatch.frames)[-1][0] == "mixed"


def test_pool_of_processes() -> None:
    context = multiprocessing.get_context("fork")
    with concurrent.futures.ProcessPoolExecutor(1, mp_context=context) as pool:
        error = raised(lambda: pool.submit(mixed).result())
    found = find(error)
    assert found is not None
    assert found[0] is error
    assert found[1].wrapped_in == "another process"
    assert own(found[1].frames)[-1][0] == "mixed"
    with context.Pool(1) as workers:
        assert own(said(lambda: workers.map(mixed, [1])).frames)[-1][0] == "mixed"


def test_torchscript() -> None:
    mismatch = said(lambda: scripted(torch.ones(2), torch.ones(2, device="meta")))
    assert mismatch.wrapped_in == "TorchScript"
    assert mismatch.id == "PT142"
    assert own(mismatch.frames) == [("scripted", "return z + y")]


def test_compiled() -> None:
    mismatch = said(lambda: compiled(torch.ones(2), torch.ones(2, device="meta")))
    assert mismatch.wrapped_in == "torch.compile"
    assert set(mismatch.devices) == {"cpu", "meta"}
    assert own(mismatch.frames) == [("compiled", "return x + y")]


JOBLIB = '''"""
Traceback (most recent call last):
  File "/site/joblib/externals/loky/process_executor.py", line 463, in _process_worker
    r = call_item()
        ^^^^^^^^^^^
  File "/tmp/ipykernel_1/123.py", line 4, in score
    return model(x)
           ^^^^^^^^
RuntimeError: Input type (torch.FloatTensor) and weight type (torch.cuda.FloatTensor) should be the same
"""'''

TWO = """Caught RuntimeError in DataLoader worker process 3.
Original Traceback (most recent call last):
  File "data.py", line 9, in __getitem__
    return self.cache[key]
KeyError: 'a'

During handling of the above exception, another exception occurred:

Traceback (most recent call last):
  File "data.py", line 11, in __getitem__
    return x + self.mean
           ~~^~~~~~~~~~~
RuntimeError: Expected all tensors to be on the same device, but found at least two devices, cuda:0 and cpu!
"""

SERIALIZED = """The following operation failed in the TorchScript interpreter.
Traceback of TorchScript, serialized code (most recent call last):
  File "code/__torch__/model.py", line 12, in forward
    _0 = self.weight
    return torch.add(x, _0)
           ~~~~~~~~~ <--- HERE

Traceback of TorchScript, original code (most recent call last):
  File "model.py", line 7, in forward
        x = x * 2
        return x + self.weight
               ~~~~~~~~~~~~~~~ <--- HERE
RuntimeError: Expected all tensors to be on the same device, but found at least two devices, cuda:0 and cpu!
"""

RAY = """\x1b[36mray::train()\x1b[39m (pid=12, ip=10.0.0.1)
  File "train.py", line 3, in train
    loss = criterion(out, y)
RuntimeError: Expected all tensors to be on the same device, but found at least two devices, cuda:0 and cpu!"""


def test_message_and_frames_of_the_last_traceback_are_taken() -> None:
    mismatch = recognise(RuntimeError(TWO))
    assert mismatch is not None
    assert (mismatch.id, mismatch.wrapped_in) == ("PT010", "DataLoader worker process 3")
    assert mismatch.frames == (TextFrame("data.py", 11, "__getitem__", "return x + self.mean"),)
    assert mismatch.text == TWO


def test_joblib_sends_the_text_as_the_cause() -> None:
    remote = type("_RemoteTraceback", (Exception,), {"__str__": lambda self: self.tb})(JOBLIB)
    remote.tb = JOBLIB
    error = RuntimeError(JOBLIB.splitlines()[-2].partition(": ")[2])
    error.__cause__ = remote
    mismatch = recognise(error)
    assert mismatch is not None
    assert mismatch.roles == {"input": "cpu", "weight": "cuda"}
    assert mismatch.frames[-1] == TextFrame("/tmp/ipykernel_1/123.py", 4, "score", "return model(x)")
    alone = recognise(remote)
    assert alone is not None
    assert (alone.wrapped_in, len(alone.frames)) == ("another process", 2)


def test_original_code_of_a_saved_module() -> None:
    mismatch = recognise(RuntimeError(SERIALIZED))
    assert mismatch is not None
    assert mismatch.wrapped_in == "TorchScript"
    assert mismatch.frames == (TextFrame("model.py", 7, "forward", "return x + self.weight"),)


def test_colours_do_not_matter() -> None:
    mismatch = recognise(RuntimeError(RAY))
    assert mismatch is not None
    assert mismatch.id == "PT010"


@pytest.mark.parametrize(
    "text",
    ["Caught RuntimeError in replica 0 on device 0.", "Caught RuntimeError in pin memory thread for device 0."],
)
def test_wrapper_alone_is_no_device_error(text: str) -> None:
    assert recognise(RuntimeError(text)) is None


def test_source_in_a_traceback_is_no_message() -> None:
    text = TWO.replace("return x + self.mean", "raise ValueError('x must be on the same device as self.mean')")
    assert recognise(RuntimeError(text.replace(TWO.splitlines()[-1], "ValueError: no such key"))) is None


def test_broken_traceback_text() -> None:
    for cut in range(0, len(TWO), 7):
        recognise(RuntimeError(TWO[:cut]))
        recognise(RuntimeError(TWO[cut:]))
