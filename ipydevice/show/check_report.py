"""CheckReport -> tree."""

from __future__ import annotations

from collections.abc import Iterator

from ipydevice.diagnosis import Place
from ipydevice.report import CheckFinding, CheckReport, Elsewhere, Transfer
from ipydevice.show import quantities
from ipydevice.show.panel import entry, option
from ipydevice.show.tree import Block, Code, Entry, Heading, Options, Panel, Remark, Table

FIXES_EACH = 2  # fixes shown for one finding; the others are in `report.fixes`
PLACES_EACH = 6


def of_report(report: CheckReport) -> Panel:
    """What `%%devicecheck` shows: mistakes with their fixes, then copies and waits by line."""
    return Panel(label=f"Device check: {_summary(report)}", blocks=tuple(_blocks(report)))


def _blocks(report: CheckReport) -> Iterator[Block]:
    calls = f"{quantities.plural(report.calls, 'call')} of torch in {_duration(report.seconds)}"
    yield Heading(_summary(report), aside=calls, tone="plain" if report.clean else "error")
    if report.error:
        yield Remark("partial", f"the code ended with {report.error}; what comes after it was not checked")
    number = 1
    if report.together is not None:
        yield Options((option(number, report.together),))
        number += 1
    for finding in report.findings:
        yield from _finding(finding, number)
        number += len(finding.diagnosis.fixes)
    if any(finding.repaired for finding in report.findings):
        yield Remark("note", "repaired for this run only: the code and its objects are as they were")
    if report.elsewhere:
        rows = tuple(_elsewhere(row) for row in report.elsewhere)
        yield Table(f"{quantities.plural(len(rows), 'line')} not on {report.expected}", rows, folded=False)
    if report.odd:
        yield Table(
            f"{quantities.plural(len(report.odd), 'object')} to look at", tuple(map(entry, report.odd)), folded=False
        )
    if report.transfers:
        yield Table(_transfer_summary(report), tuple(map(_transfer, report.transfers)), folded=False)
    if report.dry:
        kept = f"; changed in place all the same: {quantities.listing(report.mutated[:8])}" if report.mutated else ""
        yield Remark("dry", f"the names that it made were not kept{kept}")
    for note in report.notes:
        yield Remark("note", note)


def _summary(report: CheckReport) -> str:
    found = len(report.findings)
    parts = [quantities.plural(found, "device mistake") if found else "no device mistake"]
    if report.elsewhere:
        parts.append(f"{quantities.plural(len(report.elsewhere), 'line')} not on {report.expected}")
    for kind, noun in (("copy", "cop"), ("sync", "wait")):
        count = sum(each.count for each in report.transfers if each.kind == kind)
        if count:
            parts.append(f"{count:,} {noun}{_ending(noun, count)}")
    where = f" in In [{report.cell}]" if report.cell is not None else ""
    return f"{parts[0]}{where}" + "".join(f", {part}" for part in parts[1:])


def _ending(noun: str, count: int) -> str:
    if noun == "cop":
        return "y between devices" if count == 1 else "ies between devices"
    return " for a device" if count == 1 else "s for a device"


def _finding(finding: CheckFinding, number: int) -> Iterator[Block]:
    diagnosis = finding.diagnosis
    times = f"×{finding.count:,}" if finding.count > 1 else ""
    yield Heading(diagnosis.headline or diagnosis.message, aside=times)
    if diagnosis.failed.source:
        yield Code(str(diagnosis.failed), diagnosis.failed.source, diagnosis.marks)
    others = [place for place in finding.places if _line(place) != _line(diagnosis.failed)]
    if others:
        more = f" and {len(others) - PLACES_EACH} more" if len(others) > PLACES_EACH else ""
        yield Remark("also", "; ".join(map(str, others[:PLACES_EACH])) + more)
    if diagnosis.explanation:
        yield Remark("why", diagnosis.explanation)
    if not finding.repaired:
        yield Remark("run", "this call could not be repaired, its error was raised")
    elif finding.repair:
        yield Remark("run", finding.repair)
    shown = diagnosis.fixes[:FIXES_EACH]
    if shown:
        yield Options(tuple(option(at, fix) for at, fix in enumerate(shown, number)))


def _line(place: Place) -> tuple[object, ...]:
    return place.cell, place.file, place.line


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
        bytes=transfer.bytes,
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


def _duration(seconds: float) -> str:
    return f"{seconds:.1f} s" if seconds >= 1 else f"{seconds * 1000:.0f} ms"
