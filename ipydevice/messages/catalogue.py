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

from ipydevice.messages import template as templates
from ipydevice.messages.mismatch import Kind


@dataclass(frozen=True)
class Entry:
    """One template. `order` says what the order of the devices in the text means, "" where there is none."""

    id: str
    family: str
    kind: Kind
    since: str  # version, "" when older than the texts we could read
    until: str  # version, "" when the newest still says it
    library: str | None
    exception: str  # class names, "|" between; "" where the text alone is enough
    host: str | None  # what has to be on the host by rule
    argument: str | None  # the argument it is about, where the text has a fixed one
    template: str
    order: str
    meaning: str

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


@cache
def catalogue() -> tuple[Entry, ...]:
    """Every template that is recognised, in the order of the ids."""
    raw = pkgutil.get_data("ipydevice.messages", "catalogue.tsv")
    assert raw is not None, "catalogue.tsv belongs to the package"
    rows = [line.split("\t") for line in raw.decode().splitlines()[1:]]
    return tuple(
        Entry(id_, family, cast(Kind, kind), since, until, library or None, exception, host or None, argument or None,
              template, order, meaning)
        for id_, family, kind, since, until, library, exception, host, argument, template, order, meaning in rows
    )  # fmt: skip


@cache
def _by_precision() -> tuple[Entry, ...]:
    """Longer templates say more, so they are tried first."""
    return tuple(sorted(catalogue(), key=lambda entry: -len(entry.template)))


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
