"""Recognise every device error, and nothing else."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ipydevice.messages.mismatch import Mismatch, TextFrame
from ipydevice.messages.recognise import find, recognise

if TYPE_CHECKING:
    from ipydevice.messages.catalogue import Entry

__all__ = ["Mismatch", "TextFrame", "catalogue", "find", "recognise"]


def catalogue() -> tuple[Entry, ...]:
    """Every template that is recognised: id, family, kind, versions, op, argument, template, order, meaning."""
    from ipydevice.messages.catalogue import catalogue as read  # not needed to say that an error is an ordinary one

    return read()
