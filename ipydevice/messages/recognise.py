"""From an exception to what its text says about devices."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from ipydevice.messages import embedded, fields, reader
from ipydevice.messages.catalogue import matches
from ipydevice.messages.mismatch import Mismatch, TextFrame

# Every text in the catalogue contains one of these; `in` takes nanoseconds where a pattern takes microseconds.
_WORDS = ("device", "cuda", "cpu", "gpu", "meta", "mps", "xpu", "npu", "hpu", "xla", "numpy", "backend", "nvidia",
          "rng state", "fake", "nccl", "incompatible tensor type")  # fmt: skip
_LONGEST = 40_000  # characters that are read of one message; of a longer one its head and its tail
_CHAIN = 24  # exceptions looked at

# The base class's own descriptors: a class may define properties of these names.
_CAUSE = BaseException.__dict__["__cause__"]
_CONTEXT = BaseException.__dict__["__context__"]
_SUPPRESS = BaseException.__dict__["__suppress_context__"]
_MEMBERS = BaseExceptionGroup.__dict__["exceptions"]

# concurrent.futures, joblib's loky and multiprocessing.Pool send the worker's traceback as the cause
_REMOTE = ("_RemoteTraceback", "RemoteTraceback")


def recognise(exc: BaseException) -> Mismatch | None:
    """What the text of `exc`, its causes or its members says about devices; None when it is no device error."""
    found = find(exc)
    return None if found is None else found[1]


def find(exc: BaseException) -> tuple[BaseException, Mismatch] | None:
    """Like `recognise`, with the exception of the chain that says it: its traceback is the one to read."""
    first: tuple[BaseException, Mismatch] | None = None
    for link, explains in _chain(exc):
        if first is not None and not explains:
            break
        mismatch = _read(link)
        if mismatch is None:
            continue
        if first is None:
            first = link, mismatch
        elif _says_more(mismatch, first[1]):
            # torchmetrics says in its own words that devices differ; only the cause tells which
            return link, replace(mismatch, library=mismatch.library or first[1].library)
        if first[1].devices and first[1].confidence == "exact":
            break
    return first


def _says_more(cause: Mismatch, effect: Mismatch) -> bool:
    return bool(cause.devices) and (cause.confidence == "exact" or not effect.devices)


def _chain(exc: BaseException) -> Iterator[tuple[BaseException, bool]]:
    """The exception, its members, causes and contexts; and whether only members and causes lead to it."""
    todo = [(exc, True)]
    seen: set[int] = set()
    while todo and len(seen) < _CHAIN:
        link, explains = todo.pop(0)
        if id(link) in seen:
            continue
        seen.add(id(link))
        yield link, explains
        if issubclass(type(link), BaseExceptionGroup):
            todo.extend((member, explains) for member in _MEMBERS.__get__(link))
        cause = _CAUSE.__get__(link)
        if cause is not None:
            todo.append((cause, explains))
        context = _CONTEXT.__get__(link)
        if context is not None and not _SUPPRESS.__get__(link):
            todo.append((context, False))


def _read(exc: BaseException) -> Mismatch | None:
    name = type(exc).__name__
    text = _text(exc)
    if not text:
        return _silent(exc)
    folded = text.lower()
    if not any(word in folded for word in _WORDS):
        return None
    for part in embedded.parts(text):
        mismatch = _say(part.text, part.exception_type or name)
        if mismatch is None:
            continue
        return replace(
            _traced(exc, mismatch),
            text=text,
            exception_type=name,
            library=mismatch.library or _library(exc),
            wrapped_in=part.wrapped_in or ("another process" if _remote(exc) else None),
            frames=part.frames or _remote(exc),
        )
    return None


def _text(exc: BaseException) -> str:
    """The message; "" where a class cannot say it."""
    try:
        text = str.__str__(str(exc))
    except Exception:  # noqa: BLE001  # a user's own __str__ may do anything
        return ""
    return text if len(text) <= _LONGEST else text[: _LONGEST // 2] + "\n" + text[-_LONGEST // 2 :]


def _say(text: str, exception_type: str) -> Mismatch | None:
    near_miss = False
    for entry, found in matches(text, exception_type):
        mismatch = fields.fill(entry, found, text)
        if mismatch is not None:
            return mismatch
        near_miss = True
    return None if near_miss else reader.read(text, exception_type)


def _silent(exc: BaseException) -> Mismatch | None:
    """GradScaler.scale asserts without a message up to torch 2.2; the place of the raise is all there is."""
    step = exc.__traceback__ if type(exc) is AssertionError else None
    while step is not None and step.tb_next is not None:
        step = step.tb_next
    if step is None or not step.tb_frame.f_code.co_filename.endswith("grad_scaler.py"):
        return None
    if step.tb_frame.f_code.co_name not in ("scale", "apply_scale"):
        return None
    mismatch = _say("assert outputs.is_cuda or outputs.device.type == 'xla'", "AssertionError")
    return mismatch and replace(mismatch, text="", exception_type="AssertionError")


def _traced(exc: BaseException, mismatch: Mismatch) -> Mismatch:
    """FakeTensorDeviceMismatchError (torch 2.13) carries the op; its text does not."""
    if type(exc).__name__ != "FakeTensorDeviceMismatchError":
        return mismatch
    func = BaseException.__dict__["__dict__"].__get__(exc).get("func")
    if not type(func).__module__.startswith("torch."):
        return mismatch
    return replace(mismatch, op=fields.plain_op(str(func)))


def _library(exc: BaseException) -> str | None:
    """The package that defines the exception class, by name; None for Python's own and PyTorch's."""
    package = str(type(exc).__module__).partition(".")[0]
    return None if package in ("builtins", "torch", "__main__", "concurrent", "multiprocessing") else package


def _remote(exc: BaseException) -> tuple[TextFrame, ...]:
    cause = _CAUSE.__get__(exc)
    if cause is None or type(cause).__name__ not in _REMOTE:
        return ()
    return next((part.frames for part in embedded.parts(_text(cause)) if part.frames), ())
