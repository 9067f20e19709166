"""A function of somebody else's with ours in its place, for a while."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

_open: list[Replaced] = []


class Replaced:
    """Several may lie on one another and be taken out in any order: checks of two tasks do not end in turn.

    What somebody else has wrapped meanwhile stays, since taking it out would take theirs out too; `make` is
    given this object and makes a function that only passes on to `before` once `is_open` is False.
    """

    def __init__(self, owner: Any, name: str, make: Callable[[Replaced], Any]) -> None:
        self.before = getattr(owner, name)
        self.is_open = True
        self._owner = owner
        self._name = name
        self._ours = make(self)
        setattr(owner, name, self._ours)
        _open.append(self)

    def close(self) -> None:
        """Put back what was there; again is harmless."""
        if not self.is_open:
            return
        self.is_open = False
        _open.remove(self)
        above = next((other for other in _open if other.before is self._ours), None)
        if above is not None:
            above.before = self.before
        elif getattr(self._owner, self._name) is self._ours:
            setattr(self._owner, self._name, self.before)
