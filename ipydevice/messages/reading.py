"""One exception whose text speaks of devices: templates first, then the general reader."""

from __future__ import annotations

from dataclasses import replace

from ipydevice.messages import embedded, fields
from ipydevice.messages.entries import matches
from ipydevice.messages.mismatch import Mismatch, TextFrame

# concurrent.futures, joblib's loky and multiprocessing.Pool send the worker's traceback as the cause
_REMOTE = ("_RemoteTraceback", "RemoteTraceback")
_SCALER = "assert outputs.is_cuda or outputs.device.type == 'xla'"  # its source line, which is all there is
_ELSEWHERE = "another process"
# packages whose exception classes say nothing about who raises
_PLAIN = ("builtins", "torch", "__main__", "concurrent", "multiprocessing")

# the base class's own descriptors: a class may define properties of these names
_CAUSE = BaseException.__dict__["__cause__"]
_DICT = BaseException.__dict__["__dict__"]


def read(exc: BaseException, text: str) -> Mismatch | None:
    """What `text`, the message of `exc`, says about devices; "" is GradScaler's bare assertion."""
    name = type(exc).__name__
    for part in embedded.parts(text or _SCALER):
        mismatch = _say(part.text, part.exception_type or name)
        if mismatch is None:
            continue
        remote = _remote(exc)
        return replace(
            _with_op(exc, mismatch),
            text=text,
            exception_type=name,
            library=mismatch.library or _library(exc),
            wrapped_in=part.wrapped_in or (_ELSEWHERE if remote else None),
            frames=part.frames or remote,
        )
    return None


def _say(text: str, exception_type: str) -> Mismatch | None:
    near_miss = False
    for entry, found in matches(text, exception_type):
        mismatch = fields.fill(entry, found, text)
        if mismatch is not None:
            return mismatch
        near_miss = True
    if near_miss:
        return None
    from ipydevice.messages import reader  # its patterns take 10 ms to compile and most errors are known

    return reader.read(text, exception_type)


def _with_op(exc: BaseException, mismatch: Mismatch) -> Mismatch:
    """FakeTensorDeviceMismatchError (torch 2.13) carries the op; its text does not."""
    if type(exc).__name__ != "FakeTensorDeviceMismatchError":
        return mismatch
    func = _DICT.__get__(exc).get("func")
    if not str(type(func).__module__).startswith("torch."):
        return mismatch
    return replace(mismatch, op=fields.plain_op(str(func)))


def _library(exc: BaseException) -> str | None:
    """The package that defines the exception class; None for Python's own and PyTorch's."""
    package = str(type(exc).__module__).partition(".")[0]
    return None if package in _PLAIN else package


def _remote(exc: BaseException) -> tuple[TextFrame, ...]:
    """The frames of the worker, where a process pool sent them along."""
    cause = _CAUSE.__get__(exc)
    if cause is None or type(cause).__name__ not in _REMOTE:
        return ()
    text = getattr(cause, "tb", None)  # both classes keep the text in this plain attribute
    if type(text) is not str:
        return ()
    return next((part.frames for part in embedded.parts(text) if part.frames), ())
