"""One colour a device in all views; a name or letter always stands beside it."""

from __future__ import annotations

import re

# Okabe and Ito's colours that read on white and on black, for all kinds of colour vision
# (https://jfly.uni-koeln.de/color/).
_CARDS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")
_HOST, _META = "#8a8a8a", "#b8a9c9"


def colour(device: str) -> str:
    """The colour of a device, or of the first of several: "cuda:0 + cpu"."""
    first = device.partition(" + ")[0]
    kind, _, index = first.partition(":")
    if kind == "cpu":
        return _HOST
    if kind in ("meta", "file", "?", ""):
        return _META
    number = int(index) if re.fullmatch(r"\d{1,4}", index, re.ASCII) else 0
    return _CARDS[number % len(_CARDS)]
