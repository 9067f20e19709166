"""The general reader: texts of no known template that speak of two devices."""

from __future__ import annotations

from ipydevice.messages.mismatch import Mismatch


def read(text: str) -> Mismatch | None:
    return None
