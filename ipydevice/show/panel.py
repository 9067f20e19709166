"""Diagnosis -> tree."""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from itertools import groupby

from ipydevice.diagnosis import Diagnosis, Fix, Rerun, Row
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

LOADING = "new cell, to load the file again"  # heads the setup of a patch

# A guess stated as a fact costs more trust than it saves words.
_HEDGE = {"certain": "", "likely": "probably: ", "guess": "a guess: "}


def of_diagnosis(diagnosis: Diagnosis) -> Panel:
    """The panel below a failed cell: headline, marked line, why, fixes, folded table."""
    blocks = tuple(_blocks(diagnosis))
    return Panel(label=f"Device error: {diagnosis.headline}", blocks=blocks, lines=STANDARD_LINES)


def _blocks(d: Diagnosis) -> Iterator[Block]:
    # The ids to search for stand in the table's line; without a table they go up.
    aside = (d.op,) if d.placements else (d.op, d.message_id, d.family)
    yield Heading(d.headline or d.message, aside=" · ".join(part for part in aside if part))
    if d.failed.source:
        yield Code(str(d.failed), d.failed.source, d.marks)
    if d.explanation or d.confidence != "certain":
        yield Remark("why", _HEDGE[d.confidence] + (d.explanation or "the message alone does not tell"))
    for note in d.notes:
        yield Remark("note", note)
    if d.evidence and d.confidence != "certain":
        yield Remark("because", "; ".join(d.evidence), optional=True)
    if d.fixes:
        yield Options(tuple(option(number, fix) for number, fix in enumerate(d.fixes, 1)))
    if d.placements:
        yield placements(d)
    yield Folded("why I think so", tuple(_reasons(d)))


def _reasons(d: Diagnosis) -> Iterator[Remark]:
    for fact in d.evidence:
        yield Remark("fact", fact)
    yield Remark("sure", d.confidence)
    if d.origin is not None and d.origin.source:
        yield Remark("origin", f"{d.origin}: `{d.origin.source}`")
    if d.habit:
        yield Remark("habit", d.habit)
    yield Remark("error", d.message)
    yield Remark("family", " ".join(part for part in (d.message_id, d.family, d.cause) if part))


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
    return "the cell" if rerun.cell is None else f"In [{rerun.cell}]"


def _main(fix: Fix, reruns: tuple[str, ...]) -> str:
    if fix.kind == "patch":
        return "write the files"
    if fix.setup and not fix.edits and not reruns:
        return "insert & run"
    verb = "repair" if fix.kind == "repair" else "fix"
    return f"{verb} & re-run {', '.join(reruns)}" if reruns else verb


def _diff(fix: Fix) -> Iterator[DiffLine]:
    """Changed lines with one line around; a patch as it is; the code of a new cell as added lines."""
    if fix.diff is not None:
        for line in fix.diff.splitlines():
            heading = line.startswith(("@@", "---", "+++"))
            yield DiffLine("@", line) if heading else DiffLine(line[:1] if line[:1] in "+-" else " ", line[1:])
    else:
        for edit in fix.edits:
            yield DiffLine("@", f"In [{edit.cell}]" if edit.cell is not None else edit.file or "cell")
            lines = difflib.unified_diff(edit.before.splitlines(), edit.after.splitlines(), n=1, lineterm="")
            for line in list(lines)[2:]:
                if not line.startswith("@@"):
                    yield DiffLine(line[0], line[1:])
    if fix.setup:
        yield DiffLine("@", LOADING if fix.kind == "patch" else "new cell")
        for line in fix.setup.splitlines():
            yield DiffLine("+", line)


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
    where = f" in {quantities.plural(len(frames), 'frame')}" if any(frame for frame, _ in frames) else ""
    summary = f"{quantities.plural(total, 'name')}{where}: {quantities.by_device(row.device for row in rows)}"
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
        remark=f"{row.odd}; {row.note}" if row.odd and row.note else row.odd or row.note,
        odd=bool(row.odd),
        level=level,
    )
