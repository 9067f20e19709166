"""What a rule is, and what it says."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from ipydevice.fixes.edits import Draft
from ipydevice.lint.names import Names

Change = Callable[[Draft], object]  # what a fix does to the draft of the whole text


@dataclass(frozen=True, slots=True)
class Problem:
    """One place where a rule is broken."""

    node: ast.AST  # where it is seen
    message: str
    change: Change | None = None  # a fix that is safe to make unseen


Check = Callable[[Names], Iterator[Problem]]


@dataclass(frozen=True, slots=True)
class Rule:
    """A mistake that a text shows without running."""

    id: str  # "IPD003", never used again for another
    name: str
    why: str
    check: Check
    opt_in: bool = False  # advice rather than a mistake: only where it is selected


RULES: dict[str, Rule] = {}


def rule(id_: str, name: str, why: str, *, opt_in: bool = False) -> Callable[[Check], Check]:
    """Register a check as a rule."""

    def register(check: Check) -> Check:
        RULES[id_] = Rule(id_, name, why, check, opt_in)
        return check

    return register
