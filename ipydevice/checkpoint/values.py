"""What a pickle describes, as far as its opcodes tell: nothing of it is made."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

# Numbers, texts, bytes, None and booleans stand for themselves.


@dataclass(slots=True, eq=False)
class Global:
    """A class or function by name; it is not looked up."""

    module: str
    name: str

    def __str__(self) -> str:
        return f"{self.module}.{self.name}" if self.module else self.name


@dataclass(slots=True, eq=False)
class Held:
    """A list, tuple, set or dictionary; `pairs` of a dictionary are its keys and values."""

    kind: str  # "list", "tuple", "set", "dict"
    items: list[Any] = field(default_factory=list)
    pairs: list[tuple[Any, Any]] = field(default_factory=list)


@dataclass(slots=True, eq=False)
class Made:
    """What loading would make by calling `maker`; also what it would then put in and set."""

    maker: Any
    arguments: Any  # as given, not copied: a hostile file may hand one large tuple to thousands of calls
    items: list[Any] = field(default_factory=list)
    pairs: list[tuple[Any, Any]] = field(default_factory=list)
    state: Any = None


@dataclass(slots=True, eq=False)
class Persistent:
    """Something kept outside the pickle, such as a storage, by the id that the pickle gives."""

    identity: Any


def parts(value: Any) -> list[Any]:
    """The items of a tuple or list; nothing for all else."""
    return value.items if isinstance(value, Held) and value.kind in ("tuple", "list") else []
