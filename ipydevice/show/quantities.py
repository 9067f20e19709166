"""Bytes, shapes and device counts in words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from ipydevice.language import clauses, say


def size(count: int) -> str:
    """Bytes in binary units: 1536 -> "1.5 KiB"."""
    if count < 1024:
        return f"{count} B"
    amount = float(count)
    for unit in ("KiB", "MiB", "GiB", "TiB"):
        amount /= 1024
        if amount < 1024 or unit == "TiB":
            break
    return f"{amount:.1f} {unit}" if amount < 100 else f"{amount:.0f} {unit}"


def least(amount: str, at_least: bool = True) -> str:
    """ "at least 1.5 KiB", of a lower bound."""
    return say("at least {amount}", amount=amount) if at_least else amount


def shape(dimensions: tuple[int, ...] | None) -> str:
    return "" if dimensions is None else f"[{', '.join(map(str, dimensions))}]"


def typed_shape(dtype: str | None, dimensions: tuple[int, ...] | None) -> str:
    """As PyTorch users write it: "float32[32, 10]"."""
    return f"{dtype or ''}{shape(dimensions)}"


def plural(count: int, noun: str) -> str:
    """ "1 name", "2,000 names" """
    return say(f"{{count}} {noun}" if count == 1 else f"{{count}} {noun}s", count=f"{count:,}")


def sizes(held: Mapping[str, int]) -> str:
    """ "1.2 GiB on cuda:0, 3.0 MiB on cpu" """
    return clauses(say("{size} on {device}", size=size(count), device=device) for device, count in held.items())


def by_device(devices: Iterable[str]) -> str:
    """ "9 on cuda:0, 5 on cpu", the most frequent first."""
    counts = Counter(device for device in devices if device)
    return clauses(say("{count} on {device}", count=f"{n:,}", device=device) for device, n in counts.most_common(6))


def duration(seconds: float) -> str:
    return f"{seconds:.1f} s" if seconds >= 1 else f"{seconds * 1000:.0f} ms"
