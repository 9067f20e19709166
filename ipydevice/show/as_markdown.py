"""Tree -> Markdown that may be posted: in a forum, an issue, a mail.

It names what is where and keeps the rest at home: no data, no folders of the machine. What comes from the
user's session stands in fences or is escaped, so that no name becomes markup, a link or a mention.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator
from dataclasses import replace

from ipydevice import environment
from ipydevice.diagnosis import Diagnosis, Inventory, Mark, Place
from ipydevice.language import say
from ipydevice.report import CheckReport
from ipydevice.show import as_text
from ipydevice.show.escape import visible, wrap
from ipydevice.show.panel import CONFIDENCE, placements
from ipydevice.show.paths import without_folders
from ipydevice.show.tree import Block, Code, Heading, Options, Panel, Remark, Table

WIDTH = 96  # columns; forums show about 100 before they scroll
ROWS = 20
_MARKUP = re.compile(r"([\\`*_{}\[\]<>#|~@&!$])")
_TICKS = re.compile(r"`+")


def report(view: Diagnosis | Inventory | CheckReport, panel: Panel) -> str:
    """What is wrong, the lines, the devices, and with which versions."""
    parts = _of_diagnosis(view) if isinstance(view, Diagnosis) else _of_panel(panel)
    return "\n\n".join((*parts, *_surroundings())) + "\n"


def _of_diagnosis(d: Diagnosis) -> Iterator[str]:
    """Less than the panel has: nobody elsewhere can take its fixes, and the cells are the user's own."""
    yield f"### {_escaped(d.headline or d.message)}"
    yield _fenced("\n".join(wrap(without_folders(visible(d.message)), WIDTH)))
    if d.failed.source:
        yield f"**{_escaped(str(d.failed))}**"
        yield _lines(Code("", d.failed.source, d.marks))
    if d.origin is not None and d.origin.source and _line(d.origin) != _line(d.failed):
        yield say("{place}, where it comes from", place=f"**{_escaped(str(d.origin))}**")
        yield _lines(Code("", d.origin.source))
    if d.explanation:
        sure = "" if d.confidence == "certain" else f" ({say(CONFIDENCE[d.confidence])})"
        yield _labelled(say("why"), d.explanation + sure)
    for note in d.notes:
        yield _labelled(say("note"), note)
    users = tuple(row for row in d.placements if row.user)
    if users:
        yield _lines(replace(placements(replace(d, placements=users)), left=0, folded=False, most=ROWS))
    yield _labelled(say("kind"), " ".join(part for part in (d.message_id, d.family, d.cause, d.op) if part))


def _line(place: Place) -> tuple[object, ...]:
    return place.cell, place.file, place.line


def _of_panel(panel: Panel) -> Iterator[str]:
    yield f"### {_escaped(panel.label)}"
    yield _lines(*(block for block in panel.blocks if not isinstance(block, Options)))


def _surroundings() -> Iterator[str]:
    yield _labelled(say("versions"), ", ".join(f"{name} {version}" for name, version in environment.versions().items()))
    yield _labelled(say("devices"), "; ".join(environment.devices()) or say("no accelerator in use"))


def _escaped(text: str) -> str:
    return _MARKUP.sub(r"\\\1", without_folders(visible(text)))


def _labelled(label: str, text: str) -> str:
    """A paragraph; `code` between backticks stays code, everything else is escaped."""
    parts = without_folders(visible(text)).split("`")
    if len(parts) % 2 == 0:  # a backtick without its partner
        return f"**{label}** {_escaped(text)}"
    return f"**{label}** " + "".join(
        f"`{part}`" if index % 2 and part else _escaped(part) for index, part in enumerate(parts)
    )


def _lines(*blocks: Block) -> str:
    text = as_text.render(Panel("", tuple(map(_at_home, blocks))), width=WIDTH, color=False)
    return _fenced(without_folders(textwrap.dedent(text)))


def _at_home(block: Block) -> Block:
    """A block that names no folder, before lines are cut and marks are set under them."""
    if isinstance(block, Code):
        return replace(
            block,
            label=without_folders(block.label),
            source=without_folders(block.source),
            marks=tuple(_moved(mark, block.source) for mark in block.marks),
        )
    if isinstance(block, Table):
        rows = (replace(e, name=without_folders(e.name), remark=without_folders(e.remark)) for e in block.entries)
        return replace(block, entries=tuple(rows))
    return replace(block, text=without_folders(block.text)) if isinstance(block, (Heading, Remark)) else block


def _moved(mark: Mark, source: str) -> Mark:
    start = len(without_folders(source[: mark.start]))
    return replace(mark, start=start, end=start + len(without_folders(source[mark.start : mark.end])))


def _fenced(text: str) -> str:
    longest = max(map(len, _TICKS.findall(text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}text\n{text}\n{fence}"
