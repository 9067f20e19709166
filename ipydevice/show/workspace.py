"""Inventory -> tree."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from ipydevice.diagnosis import DeviceMemory, Inventory, Row
from ipydevice.language import joined, say
from ipydevice.show import quantities
from ipydevice.show.panel import entry, option
from ipydevice.show.tree import (
    Bar,
    Bars,
    Block,
    Entries,
    Entry,
    Heading,
    Options,
    Panel,
    Remark,
    Segment,
    Strip,
    Table,
    worth,
)

# With more names than this, what lies inside modules and containers is folded at first.
OPEN_AT_MOST = 40
STRIPS = 4  # modules whose layers are drawn
UNKNOWN_BYTES = 2**20  # allocated but reached by no name: below, it is rounding of blocks


def of_inventory(inventory: Inventory) -> Panel:
    """What `%devices` shows: a bar per device, then every name with what is odd about it."""
    return Panel(label=say("Tensors and modules by device"), blocks=tuple(_blocks(inventory)))


def _blocks(inventory: Inventory) -> Iterator[Block]:
    total = len(inventory.rows) + inventory.left
    if not total and not inventory.title:
        yield Heading(say("no tensor, module or optimizer in this workspace"), tone="plain")
        return
    odd = sum(bool(row.odd) for row in inventory.rows)
    opened = inventory.at_least and max(_levels(inventory.rows), default=0) > 1
    names = quantities.least(quantities.plural(total, "name"), opened)
    said = say("{names} with a device, {odd} odd" if odd else "{names} with a device", names=names, odd=f"{odd:,}")
    yield Heading(inventory.title or said, tone="plain")
    if inventory.bytes_by_device:
        yield _bars(inventory)
    for memory in inventory.memory:
        yield Remark(say("memory"), _held(memory))
    for label, text in inventory.notes:
        yield Remark(say(label), text)
    if inventory.fixes:
        yield Options(tuple(option(number, fix) for number, fix in enumerate(inventory.fixes, 1)))
    if not total:
        return
    yield from _strips(inventory.rows)
    yield Table(
        quantities.by_device(row.device for row in inventory.rows),
        _entries(inventory),
        left=inventory.left,
        folded=False,
        at_least=inventory.at_least,
    )


def _strips(rows: Sequence[Row]) -> Iterator[Strip]:
    for row in [row for row in rows if row.layers][:STRIPS]:
        yield Strip(row.name, tuple(Segment(run.device, run.count, run.first, run.last) for run in row.layers))


def _held(memory: DeviceMemory) -> str:
    """Who holds the memory of one device."""
    named, output, error = (
        quantities.least(quantities.size(held), part in memory.at_least)
        for part, held in (("named", memory.named), ("output", memory.output), ("error", memory.error))
    )
    parts = [say("{named} named by you", named=named)]
    if memory.output:
        parts.append(say("{output} held by Out[] and _", output=output))
    if memory.error:
        parts.append(say("{error} by the last error's frames", error=error))
    if memory.holders:
        parts[-1] += f" ({joined(f'{name} {quantities.size(held)}' for name, held in memory.holders)})"
    if memory.allocated is not None:
        known = memory.named + memory.output + memory.error
        unknown = memory.allocated - known
        parts.append(say("{size} allocated by torch", size=quantities.size(memory.allocated)))
        if unknown >= UNKNOWN_BYTES:
            size = quantities.size(unknown)
            parts[-1] += say(
                ", of which at most {size} by no name (what was not looked at, graphs, closures, caches)"
                if memory.at_least
                else ", of which {size} by no name (graphs, closures, caches)",
                size=size,
            )
    if memory.used is not None and memory.total is not None:
        parts.append(
            say(
                "{used} of {total} in use on the card",
                used=quantities.size(memory.used),
                total=quantities.size(memory.total),
            )
        )
    return f"{memory.device}: {say('; ').join(parts)}"


def _bars(inventory: Inventory) -> Bars:
    by_device = inventory.bytes_by_device
    everything = sum(by_device.values()) or 1
    return Bars(
        tuple(
            Bar(device, quantities.least(quantities.size(held), inventory.at_least), held / everything)
            for device, held in sorted(by_device.items(), key=lambda item: -item[1])
        )
    )


def _entries(inventory: Inventory) -> Entries:
    """A line for each row, below the row whose name begins its own: `model.fc.weight` inside `model`."""
    rows = inventory.rows
    levels = _levels(rows)
    crowded = len(rows) > OPEN_AT_MOST
    offered = "\n".join(fix.setup or "" for fix in inventory.fixes)

    def make(index: int) -> Entry:
        row, level = rows[index], levels[index]
        if row.remedy and row.remedy not in offered and row.remedy not in row.odd and "\n" not in row.remedy:
            row = replace(row, odd=say("{odd}; write `{remedy}`", odd=row.odd, remedy=row.remedy))
        line = entry(row, level)
        if index + 1 < len(rows) and levels[index + 1] > level:
            line.header, line.open = True, not crowded
        return line

    return Entries([worth(bool(row.odd), level) for row, level in zip(rows, levels, strict=True)], make)


def _levels(rows: Sequence[Row]) -> list[int]:
    levels: list[int] = []
    above: list[str] = []  # names of the row before and of those around it
    for row in rows:
        name = row.name
        if name.isidentifier():  # inside nothing, as most are
            above = [name]
        else:
            while above and not _inside(name, above[-1]):
                above.pop()
            above.append(name)
        levels.append(len(above))
    return levels


def _inside(name: str, outer: str) -> bool:
    return name.startswith(outer) and name[len(outer) : len(outer) + 1] in (".", "[")
