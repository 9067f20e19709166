"""What a message says, what is behind it mostly, what to do: from the catalogue, for README and ``explain --list``."""

from __future__ import annotations

import re
import textwrap
from itertools import groupby
from typing import Any

from ipydevice.diagnose.words import HABITS
from ipydevice.messages import catalogue, entries
from ipydevice.messages.entries import Entry, Usual

_WIDE = 100
_MARKS = re.compile(r"<<=?(?P<first>[^|>]+)[^>]*>>|\{[^}]*\}|\[\[(?P<maybe>.*?)\]\]|[\^$]")


def as_text() -> str:
    """Every known message by its family, with the family's usual cause and remedy."""
    lines = []
    for family, members in groupby(sorted(catalogue(), key=_place), key=lambda entry: entry.family):
        lines.append(family)
        behind = entries.usual().get(family)
        if behind is not None:
            lines += _wrapped("mostly  ", behind.usual) + _wrapped("do      ", HABITS[behind.cause])
        lines += [line for entry in members for line in _wrapped(f"{entry.id:<6}  ", entry.meaning)]
    return "\n".join(lines)


def about(id_: str) -> dict[str, Any] | None:
    """All that the catalogue knows of one message; None where it has no such id."""
    entry = entries.entry_of(id_)
    if entry is None:
        return None
    texts = {plain_text(one): one.versions for one in entries.entries() if one.id == entry.id}
    return {**_data(entry), "texts": [{"text": text, "versions": versions} for text, versions in texts.items()]}


def about_as_text(found: dict[str, Any]) -> str:
    """The same for a person, with … for what differs from case to case."""
    lines = [f"{found['id']}  {found['family']}"]
    for said in found["texts"]:
        versions = f" ({found['library'] or 'PyTorch'} {said['versions']})" if said["versions"] else ""
        lines += _wrapped("says    ", said["text"] + versions)
    lines += _wrapped("means   ", found["meaning"])
    if found["order"] and not found["order"].startswith("none"):
        lines += _wrapped("order   ", f"the devices are named in this order: {found['order']}")
    if found["usual_cause"]:
        lines += _wrapped("mostly  ", found["usual_cause"]) + _wrapped("do      ", found["what_to_do"])
    return "\n".join(lines)


def as_data() -> list[dict[str, str | None]]:
    """The same as JSON takes it, one dictionary for each message."""
    return [_data(entry) for entry in catalogue()]


def _data(entry: Entry) -> dict[str, str | None]:
    behind = entries.usual().get(entry.family)
    return {
        "id": entry.id,
        "family": entry.family,
        "kind": entry.kind,
        "versions": entry.versions,
        "library": entry.library,
        "meaning": entry.meaning,
        "order": entry.order,
        "usual_cause": behind.usual if behind else None,
        "what_to_do": HABITS[behind.cause] if behind else None,
    }


def as_markdown() -> str:
    """The families that people meet most, a row for each, with the words of the newest PyTorch."""
    rows = ["| the message says | mostly because | what to do |", "|---|---|---|"]
    for behind in entries.usual().values():
        if behind.quick:
            rows.append(f"| {_message(behind)} | {behind.usual} | {HABITS[behind.cause]} |")
    return "\n".join(rows)


def _message(behind: Usual) -> str:
    """The message that stands for a family, with … for what differs from case to case."""
    (entry,) = (entry for entry in catalogue() if entry.id == behind.quick)
    return f"`{plain_text(entry).partition(' (when checking')[0].rstrip('.!')}`"


def plain_text(entry: Entry) -> str:
    """The text as it is raised, with … for what differs from case to case."""
    return _MARKS.sub(_plain, entry.template)


def _plain(mark: re.Match[str]) -> str:
    return mark["first"] or _MARKS.sub(_plain, mark["maybe"] or "") or ("…" if mark.group().startswith("{") else "")


def _place(entry: Entry) -> int:
    """Where its family is met first, so that families stay in the order of the ids."""
    return next(number for number, other in enumerate(catalogue()) if other.family == entry.family)


def _wrapped(head: str, text: str) -> list[str]:
    return textwrap.wrap(text, _WIDE, initial_indent=f"  {head}", subsequent_indent=" " * (len(head) + 2))
