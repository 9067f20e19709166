"""Texts that carry another traceback: workers, replicas, compilers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ipydevice.messages.mismatch import TextFrame


@dataclass(frozen=True, slots=True)
class Part:
    """One message inside a text, with the traceback that came with it."""

    text: str
    exception_type: str = ""
    wrapped_in: str | None = None
    frames: tuple[TextFrame, ...] = ()


def parts(text: str, exception_type: str) -> Iterator[Part]:
    yield Part(text, exception_type)
