"""From an exception to what its text says about devices.

This module runs for every error of the session, most of which have nothing to do with devices,
so it imports nothing heavy and asks for a word of devices before anything else.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from ipydevice.messages.mismatch import Mismatch

# Every text in the catalogue contains one of these; `in` takes nanoseconds where a pattern takes microseconds.
# fmt: off
_WORDS = (
    "device", "cuda", "cpu", "gpu", "meta", "mps", "xpu", "npu", "hpu", "xla", "numpy", "backend", "nvidia", "nccl",
    "accelerat", "offload", "fake", "bytetensor", "incompatible", "dummy", "distributed", "bitsandbytes", "pin_memory",
)
# fmt: on
_LONGEST = 16_000  # characters that are read of one message; of a longer one its head and its tail
_CHAIN = 24  # exceptions looked at

# The base class's own descriptors: a class may define properties of these names.
_CAUSE = BaseException.__dict__["__cause__"]
_CONTEXT = BaseException.__dict__["__context__"]
_TRACEBACK = BaseException.__dict__["__traceback__"]
_SUPPRESS = BaseException.__dict__["__suppress_context__"]
_MEMBERS = BaseExceptionGroup.__dict__["exceptions"]


def recognise(exc: BaseException) -> Mismatch | None:
    """What the text of `exc`, its causes or its members says about devices; None when it is no device error."""
    found = find(exc)
    return None if found is None else found[1]


def find(exc: BaseException) -> tuple[BaseException, Mismatch] | None:
    """Like `recognise`, with the exception of the chain that says it: its traceback is the one to read."""
    if not issubclass(type(exc), (Exception, BaseExceptionGroup)):  # KeyboardInterrupt, SystemExit
        return None
    first: tuple[BaseException, Mismatch] | None = None
    for link, explains in _chain(exc):
        if first is not None and not explains:
            continue
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
    text = _text(exc)
    folded = text.lower()
    if not any(word in folded for word in _WORDS) and not (text == "" and _is_silent_scaler(exc)):
        return None
    from ipydevice.messages import reading  # the catalogue and its patterns: only once a text speaks of devices

    return reading.read(exc, text)


def _is_silent_scaler(exc: BaseException) -> bool:
    """GradScaler.scale asserts without a message up to torch 2.2; the place of the raise is all there is."""
    step = _TRACEBACK.__get__(exc) if type(exc) is AssertionError else None
    while step is not None and step.tb_next is not None:
        step = step.tb_next
    if step is None:
        return False
    code = step.tb_frame.f_code
    return code.co_filename.endswith("grad_scaler.py") and code.co_name in ("scale", "apply_scale")


def _text(exc: BaseException) -> str:
    """The message; "" where a class cannot say it."""
    try:
        text = str.__str__(str(exc))
    except Exception:  # noqa: BLE001  # a user's own __str__ may do anything
        return ""
    return text if len(text) <= _LONGEST else text[: _LONGEST // 2] + "\n" + text[-_LONGEST // 2 :]
