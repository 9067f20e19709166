"""The known error texts: rows of ``catalogue.tsv``, each a template with its family and meaning.

Nothing is read before the first error that speaks of a device, and a template is compiled
only when its longest literal piece stands in the text.
"""

from __future__ import annotations

import pkgutil
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from typing import cast

from ipydevice.language import Sentence
from ipydevice.messages import template as templates
from ipydevice.messages.mismatch import Kind


@dataclass(frozen=True)
class Entry:
    """One template of an error text."""

    id: str
    family: str
    kind: Kind
    since: str  # version, "" when older than the texts we could read
    until: str  # version, "" when the newest still says it
    library: str | None
    exception: str  # class names, "|" between; "" where the text alone is enough
    host: str | None  # what has to be on the host by rule; "*" for the argument that the text names
    op: str | None  # the op it is about, where only one says so
    argument: str | None  # the argument it is about, where only one can be
    template: str
    remark: str  # on the order of the devices, where it needs one
    meaning: str

    @property
    def order(self) -> str:
        """What the order of the devices in the text means; "" where it states fewer than two."""
        if self.remark:
            return self.remark
        by_name = Sentence("the one that the text names") if any(place.kind == "role" for place in self.places) else ""
        labels = [_label(place.role) or by_name for place in self.places if place.kind in templates.DEVICES]
        return ", then ".join(labels) if len(labels) > 1 and all(labels) else ""

    @property
    def versions(self) -> str:
        """In words: ``"1.10 to 2.7"``, ``"2.8 and later"``."""
        if self.since and self.until:
            return self.since if self.since == self.until else f"{self.since} to {self.until}"
        if self.since:
            return f"{self.since} and later"
        return f"up to {self.until}" if self.until else ""

    @cached_property
    def anchor(self) -> str:
        return templates.anchor(self.template)

    @cached_property
    def places(self) -> list[templates.Place]:
        return templates.places(self.template)

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        return templates.pattern(self.template)


_NARROW = re.compile(r"\{(?:enum|known|cpu)\b")  # places that few words fit


def _label(role: str) -> str:
    name, _, part = role.partition("/")
    return _LABELS.get(name, name) or part


_LABELS: dict[str, Sentence] = {"named": "the one that differs", "reference": "the one it is compared with"}


def catalogue() -> tuple[Entry, ...]:
    """One entry for each id, in the order of the ids: what ``ipydevice explain --list`` prints."""
    return tuple({entry.id: entry for entry in reversed(entries())}.values())[::-1]


@cache
def entries() -> tuple[Entry, ...]:
    """Every template; those that say the same thing in other words share an id."""
    raw = pkgutil.get_data("ipydevice.messages", "catalogue.tsv")
    assert raw is not None, "catalogue.tsv belongs to the package"
    rows = [line.split("\t") for line in raw.decode().splitlines()[1:]]
    return tuple(
        Entry(id_, family, cast(Kind, kind), since, until, library or None, exception, host or None, op or None,
              argument or None, template, remark, meaning)
        for id_, family, kind, since, until, library, exception, host, op, argument, template, remark, meaning in rows
    )  # fmt: skip


@dataclass(frozen=True)
class Usual:
    """What is behind the messages of a family, mostly: a row of ``usual.tsv``."""

    family: str
    cause: str  # a class of `diagnose.words`
    usual: str  # in words
    quick: str  # the message that stands for it in the quick table of the README; "" where it is too rare


@cache
def usual() -> dict[str, Usual]:
    """By family; wordings of other libraries have none."""
    raw = pkgutil.get_data("ipydevice.messages", "usual.tsv")
    assert raw is not None, "usual.tsv belongs to the package"
    rows = [line.split("\t") for line in raw.decode().splitlines()[1:]]
    return {family: Usual(family, cause, words, quick) for family, cause, words, quick in rows}


@cache
def _by_precision() -> tuple[Entry, ...]:
    """Templates with more literal text first; of equal ones those that ask for more."""

    def key(entry: Entry) -> tuple[int, bool, bool]:
        return -templates.weight(entry.template), not entry.exception, not _NARROW.search(entry.template)

    return tuple(sorted(entries(), key=key))


def matches(text: str, exception_type: str) -> Iterator[tuple[Entry, re.Match[str]]]:
    """Templates found in `text`, the most precise first."""
    folded = templates.SPACE.sub(" ", text).lower()
    for entry in _by_precision():
        if entry.anchor not in folded:
            continue
        if entry.exception and exception_type not in entry.exception.split("|"):
            continue
        found = entry.pattern.search(text)
        if found is not None:
            yield entry, found
