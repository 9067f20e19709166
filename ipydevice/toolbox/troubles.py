"""What a tool has found wrong, each with what to do."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ipydevice import placement


class DeviceMismatchError(RuntimeError):
    """Things that belong together are on different devices; `placements` are their names and devices."""

    def __init__(self, text: str, placements: tuple[tuple[str, str], ...]) -> None:
        super().__init__(text)
        self.placements = placements


@dataclass(frozen=True, slots=True)
class Trouble:
    """One thing that is wrong, or looks so."""

    text: str
    advice: str = ""
    kind: str = ""  # a stable name: "current_device", "two_ranks_on_one_card"
    certain: bool = True  # False: it may be meant

    def __str__(self) -> str:
        doubt = "" if self.certain else "perhaps: "
        return f"{doubt}{self.text}" + (f"; {self.advice}" if self.advice else "")


@dataclass(frozen=True, slots=True)
class Troubles:
    """All that one look has found; empty, and false, where all is well."""

    title: str
    found: tuple[Trouble, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.found)

    def __len__(self) -> int:
        return len(self.found)

    def __iter__(self) -> Iterator[Trouble]:
        return iter(self.found)

    def __str__(self) -> str:
        if not self.found:
            return f"{self.title}: nothing wrong"
        return "\n".join([f"{self.title}:", *(f"  ✗ {trouble}" for trouble in self.found)])

    __repr__ = __str__  # so that a cell that ends with it shows the lines


def need_module(given: Any, asking: str) -> None:
    """Raise TypeError where `given` is no module."""
    if not placement.is_module(given):
        raise TypeError(f"{asking} takes an nn.Module, but got an object of type {type(given).__name__}")


def some(items: list[str], most: int = 3) -> str:
    """The first few, and how many more there are."""
    left = len(items) - most
    return ", ".join(items[:most]) + (f" and {left:,} more" if left > 0 else "")
