"""CheckReport -> tree."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby, pairwise

from ipydevice.diagnosis import Mark
from ipydevice.report import OFFERED, CheckFinding, CheckReport, Elsewhere, Transfer
from ipydevice.show import quantities
from ipydevice.show.panel import entry, option
from ipydevice.show.tree import Block, Code, Entry, Heading, Options, Panel, Remark, Table

PLACES_EACH = 6


def of_report(report: CheckReport) -> Panel:
    """What `%%devicecheck` shows: mistakes with their fixes, then copies and waits by line."""
    return Panel(label=f"Device check: {_summary(report)}", blocks=tuple(_blocks(report)))


def progress(calls: int, moves: int, mistakes: int) -> str:
    """What a check has seen while it still runs."""
    copies = f"{moves:,} {'copy or wait' if moves == 1 else 'copies or waits'}"
    found = quantities.plural(mistakes, "device mistake")
    return f"checking: {quantities.plural(calls, 'call')} of torch, {copies}, {found} so far"


def _blocks(report: CheckReport) -> Iterator[Block]:
    if not report.done:
        yield Heading("device check: still running, its report comes with its end", tone="plain")
        return
    calls = f"{quantities.plural(report.calls, 'call')} of torch in {quantities.duration(report.seconds)}"
    yield Heading(_summary(report), aside=calls, tone="plain" if report.clean else "error")
    if report.error:
        yield Remark("partial", f"the code ended with {report.error}; what comes after it was not checked")
    raised = _STOPPED if report.stopped else _RAISED
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
                yield Remark("fix", f"fix {firsts[finding.mended_with]} mends this too")
            firsts.append(number)
            number += len(finding.offered)
    if any(finding.repaired for finding in report.findings):
        yield Remark("note", "repaired for this run only: the code and its objects are as they were")
    if report.elsewhere:
        rows = tuple(_elsewhere(row) for row in report.elsewhere)
        yield Table(f"{quantities.plural(len(rows), 'line')} not on {report.expected}", rows, folded=False)
    if report.odd:
        objects = quantities.plural(len(report.odd), "object")
        yield Table(f"{objects} with something stray", tuple(map(entry, report.odd)), folded=False)
        if report.mends:
            yield Options(tuple(option(at, fix) for at, fix in enumerate(report.mends[:OFFERED], number)))
    if report.transfers:
        yield Table(_transfer_summary(report), tuple(map(_transfer, report.transfers)), folded=False)
    if report.dry:
        kept = f"; changed in place all the same: {quantities.listing(report.mutated[:8])}" if report.mutated else ""
        yield Remark("dry", f"the names that it made were not kept{kept}")
    for note in report.notes:
        yield Remark("note", note)


def _marks_of_all(findings: Sequence[CheckFinding]) -> tuple[Mark, ...] | None:
    """The marks of findings on one line, to be shown below it once; None where they would lie on each other."""
    marks = sorted({mark for finding in findings for mark in finding.diagnosis.marks}, key=lambda mark: mark.start)
    clash = any(one.end > other.start for one, other in pairwise(marks))
    return None if clash else tuple(marks)


def _summary(report: CheckReport) -> str:
    found = len(report.findings)
    parts = [quantities.plural(found, "device mistake") if found else "no device mistake"]
    if report.elsewhere:
        parts.append(f"{quantities.plural(len(report.elsewhere), 'line')} not on {report.expected}")
    for kind, noun in (("copy", "cop"), ("sync", "wait")):
        count = sum(each.count for each in report.transfers if each.kind == kind and "pinned" not in each.target)
        if count:
            parts.append(f"{count:,} {noun}{_ending(noun, count)}")
    where = f" in In [{report.cell}]" if report.cell is not None else ""
    return f"{parts[0]}{where}" + "".join(f", {part}" for part in parts[1:])


def _ending(noun: str, count: int) -> str:
    if noun == "cop":
        return "y between devices" if count == 1 else "ies between devices"
    return " for a device" if count == 1 else "s for a device"


_RAISED = "this call could not be repaired, its error was raised"
_STOPPED = "told to stop at the first mistake, its error was raised"


def _finding(finding: CheckFinding, number: int, marks: tuple[Mark, ...] | None, raised: str) -> Iterator[Block]:
    """One row; the source line with these marks, or without it where it stands above already."""
    diagnosis = finding.diagnosis
    times = f"×{finding.count:,}" if finding.count > 1 else ""
    yield Heading(diagnosis.headline or diagnosis.message, aside=times)
    if diagnosis.failed.source and marks is not None:
        yield Code(str(diagnosis.failed), diagnosis.failed.source, marks)
    others = [place for place in finding.places if (place.cell, place.file, place.line) != finding.line]
    if others:
        more = f" and {len(others) - PLACES_EACH} more" if len(others) > PLACES_EACH else ""
        yield Remark("also", "; ".join(map(str, others[:PLACES_EACH])) + more)
    if diagnosis.explanation:
        yield Remark("why", diagnosis.explanation)
    if not finding.repaired:
        yield Remark("run", raised)
    elif finding.repair:
        yield Remark("run", finding.repair)
    if finding.offered:
        yield Options(tuple(option(at, fix) for at, fix in enumerate(finding.offered, number)))


def _transfer_summary(report: CheckReport) -> str:
    total = quantities.size(sum(each.bytes for each in report.transfers))
    return f"copies and waits on {quantities.plural(len(report.transfers), 'line')}, {total}"


def _transfer(transfer: Transfer) -> Entry:
    times = f"×{transfer.count:,}"
    remark = f"{times} in a loop" if transfer.loop else times if transfer.count > 1 else ""
    if transfer.inside:
        remark = f"{remark}, {transfer.call} inside" if remark else f"{transfer.call} inside"
    if transfer.advice:
        remark += f": {transfer.advice}"
    return Entry(
        name=f"{transfer.place}: {transfer.expression or transfer.call}",
        kind=transfer.kind,
        device=f"{transfer.source} → {transfer.target}",
        shape=quantities.shape(transfer.shape),
        dtype=transfer.dtype or "",
        bytes=transfer.bytes or None,
        remark=remark,
        odd=bool(transfer.advice),
    )


def _elsewhere(row: Elsewhere) -> Entry:
    return Entry(
        name=f"{row.place}: {row.place.source}",
        kind=row.role,
        device=row.device,
        shape=quantities.shape(row.shape),
        dtype=row.dtype or "",
        remark=f"{row.call}()" + (f" ×{row.count:,}" if row.count > 1 else ""),
        odd=row.role == "made",
    )
