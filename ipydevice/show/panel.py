"""Diagnosis -> tree."""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from itertools import groupby

from ipydevice.diagnosis import Diagnosis, Fix, Rerun, Row
from ipydevice.language import Sentence, joined, say
from ipydevice.messages.entries import entry_of
from ipydevice.show import quantities
from ipydevice.show.tree import (
    Block,
    Code,
    DiffLine,
    Entry,
    Folded,
    Heading,
    Option,
    Options,
    Panel,
    Remark,
    Table,
)

STANDARD_LINES = 12  # a failed cell's panel in a terminal, below a traceback that is long already


# A guess stated as a fact costs more trust than it saves words.
_HEDGE: dict[str, Sentence] = {"certain": "", "likely": "probably: ", "guess": "a guess: "}
CONFIDENCE: dict[str, Sentence] = {"certain": "certain", "likely": "likely", "guess": "guess"}


def of_diagnosis(diagnosis: Diagnosis) -> Panel:
    """The panel below a failed cell: headline, marked line, why, fixes, folded table."""
    blocks = tuple(_blocks(diagnosis))
    return Panel(
        label=say("Device error: {headline}", headline=diagnosis.headline), blocks=blocks, lines=STANDARD_LINES
    )


def _blocks(d: Diagnosis) -> Iterator[Block]:
    # The ids to search for stand in the table's line; without a table they go up.
    aside = (d.op,) if d.placements else (d.op, d.message_id, d.family)
    yield Heading(d.headline or d.message, aside=" · ".join(part for part in aside if part))
    if d.failed.source:
        yield Code(str(d.failed), d.failed.source, d.marks, d.further)
    if d.explanation or d.confidence != "certain":
        told = d.explanation or say("the message alone does not tell")
        yield Remark(say("why"), say(_HEDGE[d.confidence]) + told)
    for note in d.notes:
        yield Remark(say("note"), note)
    if d.evidence and d.confidence != "certain":
        yield Remark(say("because"), say("; ").join(d.evidence), optional=True)
    if d.fixes:
        yield Options(tuple(option(number, fix) for number, fix in enumerate(d.fixes, 1)))
    if d.placements:
        yield placements(d)
    yield Folded(say("why I think so"), tuple(_reasons(d)))


def _reasons(d: Diagnosis) -> Iterator[Remark]:
    for fact in d.evidence:
        yield Remark(say("fact"), fact)
    yield Remark(say("sure"), say(CONFIDENCE[d.confidence]))
    if d.origin is not None and d.origin.source:
        yield Remark(say("origin"), say("{place}: `{code}`", place=d.origin, code=d.origin.source))
    if d.habit:
        yield Remark(say("habit"), d.habit)
    yield Remark(say("error"), d.message)
    yield Remark(say("family"), " ".join(part for part in (d.message_id, d.family, d.cause) if part))
    known = entry_of(d.message_id)
    if known is not None:
        yield Remark(
            say("means"),
            say(
                "{meaning}; `ipydevice explain {id}` in a terminal tells all of this message",
                meaning=say(known.meaning),
                id=known.id,
            ),
        )


def option(number: int, fix: Fix) -> Option:
    reruns = tuple(_cell(rerun) for rerun in fix.rerun)
    return Option(
        number=number,
        title=fix.title,
        reruns=reruns,
        command=f"%devicefix {number}",
        note=fix.note,
        diff=tuple(_diff(fix)),
        main=_main(fix, reruns),
    )


def _cell(rerun: Rerun) -> str:
    return say("the cell") if rerun.cell is None else f"In [{rerun.cell}]"


def _main(fix: Fix, reruns: tuple[str, ...]) -> str:
    if fix.kind == "patch":
        return say("write the files")
    if fix.setup and not fix.edits and not reruns:
        return say("insert & run")
    if not reruns:
        return say("repair") if fix.kind == "repair" else say("fix")
    return say("repair & re-run {cells}" if fix.kind == "repair" else "fix & re-run {cells}", cells=joined(reruns))


def _diff(fix: Fix) -> Iterator[DiffLine]:
    """Changed lines with one line around; a patch as it is; the code of a new cell as added lines."""
    if fix.diff is not None:
        for line in fix.diff.splitlines():
            heading = line.startswith(("@@", "---", "+++"))
            yield DiffLine("@", line) if heading else DiffLine(line[:1] if line[:1] in "+-" else " ", line[1:])
    else:
        for edit in fix.edits:
            yield DiffLine("@", f"In [{edit.cell}]" if edit.cell is not None else edit.file or say("cell"))
            lines = difflib.unified_diff(edit.before.splitlines(), edit.after.splitlines(), n=1, lineterm="")
            for line in list(lines)[2:]:
                if not line.startswith("@@"):
                    yield DiffLine(line[0], line[1:])
    if fix.setup:
        loads = fix.kind == "patch"
        yield DiffLine("@", say("new cell, to load the file again") if loads else say("new cell"))
        for line in fix.setup.splitlines():
            yield DiffLine("+", line, aside=loads)


def placements(d: Diagnosis) -> Table:
    """The table by frame: the user's frames open and first, library frames folded."""
    rows = sorted(d.placements, key=lambda row: not row.user)  # stable: keeps the order of frames
    frames = [(frame, list(group)) for frame, group in groupby(rows, key=lambda row: row.frame)]
    entries: list[Entry] = []
    for frame, members in frames:
        if frame:
            devices = quantities.by_device(row.device for row in members)
            entries.append(Entry(frame, kind="frame", remark=devices, header=True, open=members[0].user))
        entries.extend(entry(row, level=2 if frame else 1) for row in members)
    total = len(rows) + d.placements_left
    names, devices = quantities.plural(total, "name"), quantities.by_device(row.device for row in rows)
    summary = say("{names}: {devices}", names=names, devices=devices)
    if any(frame for frame, _ in frames):
        places = quantities.plural(len(frames), "frame")
        summary = say("{names} in {frames}: {devices}", names=names, frames=places, devices=devices)
    aside = " ".join(part for part in (d.message_id, d.family) if part)
    return Table(summary, tuple(entries), left=d.placements_left, aside=aside)


def entry(row: Row, level: int = 1) -> Entry:
    return Entry(
        name=row.name,
        kind=row.kind,
        device=row.device,
        shape=quantities.shape(row.shape),
        dtype=row.dtype or "",
        bytes=row.bytes,
        remark=say("; ").join(filter(None, (row.odd, row.note))),
        odd=bool(row.odd),
        level=level,
        at_least=row.at_least,
    )
