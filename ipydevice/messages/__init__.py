"""Recognise every device error, and nothing else."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ipydevice.messages.mismatch import Mismatch, TextFrame
from ipydevice.messages.recognise import find, recognise

if TYPE_CHECKING:
    from ipydevice.messages.entries import Entry

__all__ = ["Mismatch", "TextFrame", "catalogue", "find", "recognise"]


def catalogue() -> tuple[Entry, ...]:
    """What is recognised, one entry for each id: id, family, kind, versions, order, meaning and more."""
    from ipydevice.messages import entries  # not needed to say that an error is an ordinary one

    return entries.catalogue()
