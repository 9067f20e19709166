"""A panel as a person wishes it: `ipydevice.settings`, and the same error twice in a row."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from ipydevice.diagnosis import Diagnosis
from ipydevice.show.tree import Block, Fold, Folded, Heading, Options, Panel, Table

if TYPE_CHECKING:
    from ipydevice.settings import DeviceTools

_ALL_LINES = 1_000_000  # changed lines of a fix where nothing is left out
_NUMBER = re.compile(r"In \[\d+\]")  # another one in each run of the same cell


def granted(panel: Panel, wishes: DeviceTools) -> Panel:
    """`panel` with the rows wished for, and all of it where `verbosity` is "full"."""
    blocks: tuple[Block, ...] = panel.blocks
    if wishes.rows is not None:
        blocks = tuple(replace(block, most=wishes.rows) if isinstance(block, Table) else block for block in blocks)
    if wishes.verbosity == "full":
        return replace(panel, blocks=tuple(_opened(blocks)), lines=None)
    return replace(panel, blocks=blocks)


def _opened(blocks: tuple[Block, ...]) -> Iterator[Block]:
    for block in blocks:
        if isinstance(block, Folded):
            yield from block.remarks
        elif isinstance(block, Table):
            yield replace(block, folded=False)
        elif isinstance(block, Options):
            yield replace(block, changes=_ALL_LINES)
        else:
            yield block


def folded(panel: Panel, diagnosis: Diagnosis, *why: str) -> Panel:
    """`panel` as one line that says why it is folded, and opens where there is a page."""
    heading = next((block.text for block in panel.blocks if isinstance(block, Heading)), panel.label)
    place = (str(diagnosis.failed),) if diagnosis.failed.line is not None else ()
    return replace(panel, fold=Fold(heading, " · ".join((*why, *place)), "%devicefix"))


def is_the_same(one: Diagnosis, other: Diagnosis) -> bool:
    """Whether a panel of the one would say what that of the other says, but for the numbers of cells."""
    return _said(one) == _said(other)


def _said(d: Diagnosis) -> tuple[object, ...]:
    culprit = None if d.culprit is None else (d.culprit.expression, d.culprit.device, d.culprit.shape)
    texts = (d.message, d.headline, d.explanation, *d.notes, *(fix.title for fix in d.fixes))
    return (
        *(_NUMBER.sub("", text) for text in texts),
        (d.failed.file, d.failed.line, d.failed.source, d.failed.function, d.failed_cell_source),
        (d.cause, d.confidence, culprit),
    )
