"""Error texts as files, and exceptions that carry them."""

from __future__ import annotations

import builtins
import dataclasses
from pathlib import Path
from typing import Any

from ipydevice.messages import Mismatch

HERE = Path(__file__).parent


def rows(name: str) -> list[dict[str, str]]:
    """The rows of a tab-separated file beside this one; ``\\n`` and ``\\x01`` stand for those characters."""
    head, *lines = (HERE / name).read_text().splitlines()
    names = head.split("\t")
    return [dict(zip(names, (unescaped(cell) for cell in line.split("\t")), strict=True)) for line in lines]


def unescaped(text: str) -> str:
    return text.replace("\\n", "\n").replace("\\x01", "\x01").replace("\\x02", "\x02")


def exception(name: str, text: str) -> BaseException:
    """An exception of this class name; of a class made on the spot where Python has none."""
    kind: Any = getattr(builtins, name, None) or type(name, (RuntimeError,), {})
    return kind(text)


def fields(mismatch: Mismatch) -> dict[str, Any]:
    """What has to be right, without the text and what is left at its default."""
    unset = {field.name: field.default for field in dataclasses.fields(Mismatch)}
    plain = dataclasses.asdict(mismatch)
    return {
        name: list(value) if isinstance(value, tuple) else value
        for name, value in plain.items()
        if name not in ("text", "meaning") and value not in (unset[name], {}, ())
    }
