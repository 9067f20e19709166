"""CheckReport -> tree."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import groupby, pairwise

from ipydevice.diagnosis import Mark, Place
from ipydevice.language import Sentence, clauses, joined, say
from ipydevice.report import DISPLAYED, OFFERED, CheckFinding, CheckReport, Elsewhere, Transfer
from ipydevice.show import quantities
from ipydevice.show.panel import entry, option
from ipydevice.show.tree import Block, Code, Entry, Heading, Options, Panel, Remark, Table

PLACES_EACH = 6


def of_report(report: CheckReport) -> Panel:
    """What `%%devicecheck` shows: mistakes with their fixes, then copies and waits by line."""
    return Panel(label=say("Device check: {summary}", summary=_summary(report)), blocks=tuple(_blocks(report)))


def progress(calls: int, moves: int, mistakes: int) -> str:
    """What a check has seen while it still runs."""
    copies = say("{count} copy or wait" if moves == 1 else "{count} copies or waits", count=f"{moves:,}")
    found = quantities.plural(mistakes, "device mistake")
    return say(
        "checking: {calls} of torch, {copies}, {found} so far",
        calls=quantities.plural(calls, "call"),
        copies=copies,
        found=found,
    )


def _blocks(report: CheckReport) -> Iterator[Block]:
    if not report.done:
        yield Heading(say("device check: still running, its report comes with its end"), tone="plain")
        return
    calls = say(
        "{calls} of torch in {seconds}",
        calls=quantities.plural(report.calls, "call"),
        seconds=quantities.duration(report.seconds),
    )
    yield Heading(_summary(report), aside=calls, tone="plain" if report.clean else "error")
    if report.error:
        yield Remark(
            say("partial"), say("the code ended with {error}; what comes after it was not checked", error=report.error)
        )
    raised = say(_STOPPED if report.stopped else _RAISED)
    number = 1
    firsts: list[int] = []  # the number of the first fix of each finding
    if report.together is not None:
        yield Options((option(number, report.together),))
        number += 1
    for _, group in groupby(report.findings, key=lambda finding: finding.line):
        findings = list(group)
        marked = _marks_of_all(findings)
        for at, finding in enumerate(findings):
            own = finding.diagnosis.marks if marked is None else marked if at == 0 else None
            yield from _finding(finding, number, own, raised)
            if finding.mended_with is not None:
                yield Remark(say("fix"), say("fix {number} mends this too", number=firsts[finding.mended_with]))
            firsts.append(number)
            number += len(finding.offered)
    if any(finding.repaired for finding in report.findings):
        yield Remark(say("note"), say("repaired for this run only: the code and its objects are as they were"))
    if report.elsewhere:
        rows = tuple(_elsewhere(row) for row in report.elsewhere)
        yield Table(_not_there(report), rows, folded=False)
    if report.odd:
        yield Table(_stray(report), tuple(map(entry, report.odd)), folded=False)
        if report.mends:
            yield Options(tuple(option(at, fix) for at, fix in enumerate(report.mends[:OFFERED], number)))
    if report.transfers:
        yield Table(_transfer_summary(report), tuple(map(_transfer, report.transfers)), folded=False)
    if report.dry:
        told = say("the names that it made were not kept")
        if report.mutated:
            changed = say("changed in place all the same: {names}", names=joined(report.mutated[:8]))
            told += say("; ") + changed
        yield Remark(say("dry"), told)
    for note in report.notes:
        yield Remark(say("note"), note)


def _marks_of_all(findings: Sequence[CheckFinding]) -> tuple[Mark, ...] | None:
    """The marks of findings on one line, to be shown below it once; None where they would lie on each other."""
    marks = sorted({mark for finding in findings for mark in finding.diagnosis.marks}, key=lambda mark: mark.start)
    clash = any(one.end > other.start for one, other in pairwise(marks))
    return None if clash else tuple(marks)


def _summary(report: CheckReport) -> str:
    parts = list(_wrong(report)) or [say("no device mistake")]
    if report.cell is not None:
        parts[0] = say("{found} in In [{cell}]", found=parts[0], cell=report.cell)
    if not report.findings and (report.elsewhere or report.odd):
        parts.append(say("no call mixes devices"))
    for kind, (one, several) in _COUNTED.items():
        count = sum(each.count for each in report.transfers if each.kind == kind and "pinned" not in each.target)
        if count:
            parts.append(say(one if count == 1 else several, count=f"{count:,}"))
    return clauses(parts)


def _wrong(report: CheckReport) -> Iterator[str]:
    """What is not as it should be, each kind with its number."""
    if report.findings:
        yield quantities.plural(len(report.findings), "device mistake")
    if report.elsewhere:
        yield _not_there(report)
    if report.odd:
        yield _stray(report)


def _not_there(report: CheckReport) -> str:
    return say(
        "{lines} not on {device}", lines=quantities.plural(len(report.elsewhere), "line"), device=report.expected
    )


def _stray(report: CheckReport) -> str:
    return say("{objects} with something stray", objects=quantities.plural(len(report.odd), "object"))


_COUNTED: dict[str, tuple[Sentence, Sentence]] = {
    "copy": ("{count} copy between devices", "{count} copies between devices"),
    "sync": ("{count} wait for a device", "{count} waits for a device"),
}
_RAISED: Sentence = "this call could not be repaired, its error was raised"
_STOPPED: Sentence = "told to stop at the first mistake, its error was raised"
_KINDS: dict[str, Sentence] = {"copy": "copy", "sync": "sync"}
_ROLES: dict[str, Sentence] = {"made": "made", "used": "used"}


def _finding(finding: CheckFinding, number: int, marks: tuple[Mark, ...] | None, raised: str) -> Iterator[Block]:
    """One row; the source line with these marks, or without it where it stands above already."""
    diagnosis = finding.diagnosis
    times = f"×{finding.count:,}" if finding.count > 1 else ""
    yield Heading(diagnosis.headline or diagnosis.message, aside=times)
    if diagnosis.failed.source and marks is not None:
        further = diagnosis.further if marks == diagnosis.marks else ()
        yield Code(str(diagnosis.failed), diagnosis.failed.source, marks, further)
    others = [place for place in finding.places if (place.cell, place.file, place.line) != finding.line]
    if others:
        places = say("; ").join(str(_short(place)) for place in others[:PLACES_EACH])
        if len(others) > PLACES_EACH:
            places = say("{names} and {count} more", names=places, count=len(others) - PLACES_EACH)
        yield Remark(say("also"), places)
    if diagnosis.explanation:
        yield Remark(say("why"), diagnosis.explanation)
    if not finding.repaired:
        later = say("where it could not be repaired its error was raised")
        yield Remark(say("run"), say("; ").join((finding.repair, later)) if finding.repair else raised)
    elif finding.repair:
        yield Remark(say("run"), finding.repair)
    if finding.offered:
        yield Options(tuple(option(at, fix) for at, fix in enumerate(finding.offered, number)))


def _transfer_summary(report: CheckReport) -> str:
    total = quantities.size(sum(each.bytes for each in report.transfers))
    return say(
        "copies and waits on {transfers}, {total}",
        transfers=quantities.plural(len(report.transfers), "line"),
        total=total,
    )


def _transfer(transfer: Transfer) -> Entry:
    times = f"×{transfer.count:,}"
    remark = say("{times} in a loop", times=times) if transfer.loop else times if transfer.count > 1 else ""
    if transfer.inside:
        remark = clauses(filter(None, (remark, say("{call} inside", call=transfer.call))))
    elif transfer.call == DISPLAYED:
        remark = clauses(filter(None, (remark, say("displayed by the cell"))))
    if transfer.advice:
        remark = say("{remark}: {advice}", remark=remark, advice=transfer.advice)
    return Entry(
        name=f"{_short(transfer.place)}: {transfer.expression or transfer.call}",
        kind=say(_KINDS[transfer.kind]),
        device=f"{transfer.source} → {transfer.target}",
        shape=quantities.shape(transfer.shape),
        dtype=transfer.dtype or "",
        bytes=transfer.bytes or None,
        remark=remark,
        odd=bool(transfer.advice),
    )


def _short(place: Place) -> Place:
    """A line of a table has no room for folders, and the line's number matters more."""
    return place if place.file is None else replace(place, file=os.path.basename(place.file))


def _elsewhere(row: Elsewhere) -> Entry:
    return Entry(
        name=f"{_short(row.place)}: {row.place.source}",
        kind=say(_ROLES[row.role]),
        device=row.device,
        shape=quantities.shape(row.shape),
        dtype=row.dtype or "",
        remark=f"{row.call}()" + (f" ×{row.count:,}" if row.count > 1 else ""),
        odd=row.role == "made",
    )
