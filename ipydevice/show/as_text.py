"""Tree -> plain or coloured text."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ipydevice.diagnosis import MarkedLine
from ipydevice.language import Sentence, joined, say
from ipydevice.show import quantities
from ipydevice.show.escape import cells, crop, visible, wrap
from ipydevice.show.marks import lay_out
from ipydevice.show.tree import (
    Bars,
    Block,
    Code,
    DiffLine,
    Entry,
    Fold,
    Folded,
    Heading,
    Option,
    Options,
    Panel,
    Remark,
    Segment,
    Strip,
    Table,
)

TABLE_LINES = 40  # of an unfolded table, before "and N more"
_LETTERS = "abcdefghijklmnopqrstuvwxyz"
_FURTHER, _FURTHER_AT_LEAST = 4, 2  # lines of a call that goes over several
_LEAST = 24  # columns in which a line of code still says something
LABELS = 8  # columns of "why", "fix" and the like

# Codes of the 16-colour set: a person's own terminal theme decides what they look like.
_ANSI = {"error": "1;31", "strong": "1", "stray": "1;31", "mark": "36", "quiet": "2", "add": "32", "remove": "31"}


@dataclass(frozen=True, slots=True)
class _Page:
    width: int
    color: bool
    code: int = 3  # lines of code of the first fix
    # 1: notes of the first fix only; 2: one line for each further fix; 3: no notes; 4: further fixes share lines
    terse: int = 0
    shared: int = 9  # lines that further fixes may share

    def paint(self, text: str, role: str) -> str:
        code = _ANSI.get(role) if self.color and text else None
        return f"\x1b[{code}m{text}\x1b[0m" if code else text


def render(panel: Panel, *, width: int, color: bool) -> str:
    """Lines of at most `width` columns (at least 40 are taken), without a newline at the end."""
    page = _Page(max(40, width), color)
    if panel.fold is not None:
        return _fold(panel.fold, page)
    lines = _lines(panel, page)
    steps = ((2, 1, 9), (1, 2, 9), (1, 3, 9), (1, 4, 9), (1, 4, 3), (1, 4, 2), (1, 4, 1), (0, 4, 1))
    for code, terse, shared in steps:
        if panel.lines is not None and len(lines) > panel.lines:
            lines = _lines(panel, replace(page, code=code, terse=terse, shared=shared))
    return "\n".join(line.rstrip() for line in lines)


def _fold(fold: Fold, page: _Page) -> str:
    """One line, whatever the width: the headline, as much of the rest as there is room for, the command."""
    room = page.width - 2 - cells(fold.command) - 3
    aside = visible(fold.aside)
    head = crop(visible(fold.text), room)
    tail = crop(aside, room - cells(head) - 3)
    said = page.paint(f"✗ {head}", "error") + (page.paint(f" · {tail}", "quiet") if tail else "")
    taken = 2 + cells(head) + (cells(tail) + 3 if tail else 0)
    return said + " " * (page.width - taken - cells(fold.command)) + page.paint(fold.command, "quiet")


def _lines(panel: Panel, page: _Page) -> list[str]:
    written = [(block, list(_RENDER[type(block)](block, page))) for block in panel.blocks]
    spare = math.inf if panel.lines is None else panel.lines
    spare -= sum(len(lines) for block, lines in written if not _optional(block))
    kept: list[str] = []
    for block, lines in written:
        if _optional(block):
            if len(lines) > spare:
                continue
            spare -= len(lines)
        kept.extend(lines)
    return kept


def _optional(block: Block) -> bool:
    return isinstance(block, Remark) and block.optional


def _heading(heading: Heading, page: _Page) -> Iterator[str]:
    sign = "✗ " if heading.tone == "error" else ""
    role = heading.tone if heading.tone == "error" else "strong"
    aside = visible(heading.aside)
    lines = wrap(visible(heading.text), page.width - len(sign))
    rooms = [page.width - len(sign) - cells(line) for line in lines]
    # The id is what people search for: on the first line where it fits, else on one of its own.
    beside = next((index for index, room in enumerate(rooms) if aside and cells(aside) + 2 <= room), None)
    for index, line in enumerate(lines):
        text = page.paint((sign if not index else " " * len(sign)) + line, role)
        if index == beside:
            text += " " * (rooms[index] - cells(aside)) + page.paint(aside, "quiet")
        yield text
    if aside and beside is None:
        cut = crop(aside, page.width)
        yield " " * (page.width - cells(cut)) + page.paint(cut, "quiet")


def _code(code: Code, page: _Page) -> Iterator[str]:
    label = visible(code.label)
    beside = cells(label) + 6
    if beside > page.width // 3:
        yield "  " + page.paint(crop(label, page.width - 2), "quiet")
        beside, lead = 4, "    "
    else:
        lead = "  " + page.paint(label, "quiet") + "    "
    for index, pieces in enumerate(lay_out(code.source, code.marks, page.width - beside)):
        line = lead if not index else " " * beside
        column = 0
        for piece in pieces:
            line += " " * (piece.column - column) + page.paint(piece.text, piece.role)
            column = piece.column + cells(piece.text)
        yield line
    yield from _further(code, page, beside)


def _further(code: Code, page: _Page, beside: int) -> Iterator[str]:
    """A line each: its text, and at its right what is where."""
    shown = _told_first(code.further, _FURTHER if page.terse == 0 else _FURTHER_AT_LEAST)
    room = page.width - beside
    devices = [crop(_devices(one), room // 2) for one in shown]
    texts = [" " * min(one.indent, room // 4) + visible(one.source) for one in shown]
    widest = max(map(cells, devices), default=0)
    column = min(max(map(cells, texts), default=0) + 4, room - widest)
    for one, text, said in zip(shown, texts, devices, strict=True):
        number = visible(say("line {line}", line=one.line))
        lead = page.paint(number.rjust(beside - 4), "quiet") + " " * 4 if cells(number) + 4 < beside else " " * beside
        text = crop(text, column - 2)
        role = "stray" if any(mark.stray for mark in one.marks) else "mark"
        line = lead + text + " " * (column - cells(text)) + page.paint(said, role)
        shapes = visible(" · ".join(filter(None, (quantities.typed_shape(m.dtype, m.shape) for m in one.marks))))
        if shapes and column + widest + 4 + cells(shapes) <= room:
            line += " " * (widest - cells(said) + 4) + page.paint(shapes, "quiet")
        yield line


def _devices(one: MarkedLine) -> str:
    """``cuda:0``, or of several on one line ``x cuda:0 · y cpu``."""
    several = len(one.marks) > 1
    return " · ".join(visible(f"{mark.expression} {mark.device}" if several else mark.device) for mark in one.marks)


def _told_first(further: Sequence[MarkedLine], most: int) -> list[MarkedLine]:
    """The lines with strays go first where there is no room for all; in their order."""
    kept = sorted(further, key=lambda one: not any(mark.stray for mark in one.marks))[:most]
    if most > 1 and kept and all(any(m.stray for m in one.marks) for one in kept) and len(kept) < len(further):
        others = [one for one in further if not any(mark.stray for mark in one.marks)]
        kept = [*kept[: most - 1], *others[:1]]
    return sorted(kept, key=lambda one: one.line)


def _remark(remark: Remark, page: _Page) -> Iterator[str]:
    label = visible(remark.label)
    for index, line in enumerate(wrap(visible(remark.text), page.width - LABELS - 2)):
        head = page.paint(_padded(label), "strong") if not index else " " * LABELS
        yield f"  {head}{line}"


def _padded(label: str) -> str:
    return label + " " * (LABELS - cells(label))


def _folded(folded: Folded, page: _Page) -> Iterator[str]:
    return iter(())  # evidence is one click away in HTML and in `explain().to_dict()` elsewhere


def _options(options: Options, page: _Page) -> Iterator[str]:
    if options.changes:
        for option in options.options:
            code = _changes(option.diff, options.changes, "+-")
            yield from _option(option, code, page, first=option is options.options[0])
        return
    leading, *further = options.options
    yield from _option(leading, _added(leading.diff, page.code), page, first=True)
    if page.terse == 4:
        yield from _packed(further, page)
    else:
        for option in further:
            yield from _option(option, [], page, first=False)


def _packed(options: Sequence[Option], page: _Page) -> Iterator[str]:
    """Titles and commands alone, as many on a line as it takes; the last line that there may be tells of the rest."""
    room = page.width - 2 - LABELS
    groups: list[list[Option]] = []
    for option in options:
        text, tail = _side_by_side([*groups[-1], option]) if groups else ("", "")
        if groups and cells(text) + 3 + cells(tail) <= room:
            groups[-1].append(option)
        else:
            groups.append([option])
    last = groups[page.shared - 1 :]
    for group in [*groups[: page.shared - 1], *([[option for rest in last for option in rest]] if last else [])]:
        _, tail = _side_by_side(group)
        text = _titles(group, room - cells(tail) - 3)
        yield " " * (2 + LABELS) + text + " " * (room - cells(text) - cells(tail)) + page.paint(tail, "quiet")


def _titles(options: Sequence[Option], room: int) -> str:
    """As many whole titles as there is room for, and how many there are besides."""
    for count in range(len(options), 0, -1):
        rest = len(options) - count
        text, _ = _side_by_side(options[:count])
        text += f" · {say('{count} more', count=rest)}" if rest else ""
        if cells(text) <= room:
            return text
    return crop(text, room)


def _side_by_side(options: Sequence[Option]) -> tuple[str, str]:
    titles = " · ".join(f"{option.number}  {visible(option.title)}" for option in options)
    numbers = [str(option.number) for option in options[1:]]
    return titles, visible(say(" or ").join([*(option.command for option in options[:1]), *numbers]))


def _option(option: Option, code: list[str], page: _Page, *, first: bool) -> Iterator[str]:
    head = page.paint(_padded(say("fix")), "strong") if first else " " * LABELS
    number = f"{option.number}  "
    lead = 2 + LABELS + len(number)
    brief = page.terse >= 2 and not first
    reruns = say("re-runs {cells}", cells=joined(option.reruns)) if option.reruns and not brief else ""
    tail = visible("   ".join(part for part in (reruns, option.command) if part))
    title = visible(option.title)
    lines = [crop(title, page.width - lead - cells(tail) - 3)] if brief else wrap(title, page.width - lead)
    room = page.width - lead - cells(lines[-1])
    if cells(tail) + 3 <= room:
        lines[-1] += " " * (room - cells(tail)) + page.paint(tail, "quiet")
    elif len(code) == 1 and cells(tail) + 3 + (_LEAST if page.code <= 1 else cells(code[0])) <= page.width - lead:
        beside = crop(code.pop(0), page.width - lead - cells(tail) - 3)
        gap = page.width - lead - cells(beside) - cells(tail)
        lines.append(page.paint(beside, _role(beside)) + " " * gap + page.paint(tail, "quiet"))
    else:
        lines.extend(page.paint(line, "quiet") for line in wrap(tail, page.width - lead))
    for line in code:
        lines.append(page.paint(crop(line, page.width - lead), _role(line)))
    if option.note and (page.terse == 0 or (first and page.terse < 3)):
        lines.extend(page.paint(line, "quiet") for line in wrap(visible(option.note), page.width - lead))
    yield f"  {head}{number}{lines[0]}"
    for line in lines[1:]:
        yield " " * lead + line


def _role(code: str) -> str:
    return {"+": "add", "-": "remove"}.get(code[0], "quiet")


def _added(diff: Sequence[DiffLine], limit: int) -> list[str]:
    """The first lines that a fix adds, or takes away where it adds none; "…" where there are more."""
    added = _changes(diff, limit, "+") or _changes(diff, limit, "-")
    return [*added[:-2], f"{added[-2]} …"] if added[-1:] == ["…"] else added


def _changes(diff: Sequence[DiffLine], limit: int, kinds: str) -> list[str]:
    """At most `limit` changed lines of these kinds in their order, old and new, and "…" where there are more."""
    changed = [line for line in _dedented(diff) if line.kind in kinds]
    new = sum(line.kind == "+" for line in changed)
    old = len(changed) - new
    left = {"+": min(new, max(limit - old, limit - limit // 2)), "-": 0}
    left["-"] = min(old, limit - left["+"])
    lines = []
    for line in changed:
        if left[line.kind]:
            left[line.kind] -= 1
            lines.append(f"{line.kind} {visible(line.text)}")
    return [*lines, "…"] if lines and len(lines) < len(changed) else lines


def _dedented(diff: Sequence[DiffLine]) -> Iterator[DiffLine]:
    """The changed lines that are not blank, those that follow each other moved to the left together.

    Without those that only load a patched file again.
    """
    part: list[DiffLine] = []
    for line in (*diff, DiffLine("@", "")):
        if line.kind in "+-" and line.text.strip() and not line.aside:
            part.append(line)
        elif line.kind in "@ ":
            texts = textwrap.dedent("\n".join(one.text.replace("\n", " ").rstrip() for one in part)).split("\n")
            yield from (replace(one, text=text) for one, text in zip(part, texts, strict=False))
            part = []


def _bars(bars: Bars, page: _Page) -> Iterator[str]:
    names = [visible(bar.device) for bar in bars.bars]
    column = min(24, page.width - 24, max(map(cells, names), default=0))
    length = min(40, page.width - column - 16)  # beside "  name  ", and "  1023 KiB" at its right
    for name, bar in zip(names, bars.bars, strict=True):
        filled = round(bar.share * length)
        name = crop(name, column)
        drawn = "█" * filled + "░" * (length - filled)
        yield f"  {name}{' ' * (column - cells(name))}  {page.paint(drawn, 'mark')}  {bar.amount}"


def _strip(strip: Strip, page: _Page) -> Iterator[str]:
    """A letter a layer, or for several where they are many; then what each letter stands for."""
    devices = list(dict.fromkeys(segment.device for segment in strip.segments))
    letters = {device: _LETTERS[i % len(_LETTERS)] for i, device in enumerate(devices)}
    name = crop(visible(strip.name), page.width // 3)
    room = max(10, min(60, page.width - cells(name) - 6))
    scale = min(1.0, room / sum(segment.count for segment in strip.segments))
    drawn = "".join(letters[segment.device] * max(1, round(segment.count * scale)) for segment in strip.segments)
    yield f"  {page.paint(name, 'strong')}  {page.paint(drawn, 'mark')}"
    for device in devices:
        runs = [_run(segment) for segment in strip.segments if segment.device == device]
        said = crop(visible(f"{letters[device]} {device}: {', '.join(runs)}"), page.width - 6)
        yield f"      {page.paint(said, 'quiet')}"


def _run(segment: Segment) -> str:
    first, last = segment.first or say("(itself)"), segment.last
    if segment.count == 1:
        return first
    return say("{first} to {last} ({layers})", first=first, last=last, layers=quantities.plural(segment.count, "layer"))


def _table(table: Table, page: _Page) -> Iterator[str]:
    if not table.folded:
        yield from _rows(table, page)
        return
    aside = visible(table.aside)
    summary = crop(f"▸ {visible(table.summary)}", page.width - 2)
    room = page.width - 2 - cells(summary)
    line = f"  {summary}"
    if aside and cells(aside) + 2 <= room:
        line += " " * (room - cells(aside)) + page.paint(aside, "quiet")
    yield line


def _rows(table: Table, page: _Page) -> Iterator[str]:
    table = table.within(TABLE_LINES)
    shown = table.entries
    lines = [tuple(map(say, _HEAD)), *map(_columns, shown)]
    widths = _widths(lines, page.width - 2)
    for index, line in enumerate(lines):
        text = "  "
        for column, wide in zip(line, widths, strict=False):
            if wide:
                cut = crop(column, wide)
                text += cut + " " * (wide - cells(cut) + 2)
        if index == 0:
            yield page.paint(text.rstrip(), "quiet")
            continue
        remark = line[-1]
        role = "stray" if shown[index - 1].odd else "quiet"
        room = page.width - cells(text)
        if not remark or cells(remark) <= room:
            yield text + page.paint(remark, role)
        else:
            yield text
            yield from ("      " + page.paint(part, role) for part in wrap(remark, page.width - 6))
    if table.left:
        more = say("and {count} more", count=quantities.least(f"{table.left:,}", table.at_least))
        yield page.paint(f"  {more}", "quiet")


_HEAD: tuple[Sentence, ...] = ("name", "kind", "device", "shape", "dtype", "bytes", "")
_WIDEST = (40, 14, 24, 20, 10, 18)
_EXPENDABLE = (4, 1, 3, 5)  # columns in the order in which a narrow page loses them


def _widths(lines: Sequence[tuple[str, ...]], room: int) -> list[int]:
    """Columns of each field; 0 for one that is left out."""
    widths = [min(limit, max(cells(line[i]) for line in lines)) for i, limit in enumerate(_WIDEST)]
    name = widths[0]
    for column in (*_EXPENDABLE, None):
        taken = sum(wide + 2 for wide in widths[1:] if wide) + 2
        if taken + min(name, 20) <= room or column is None:
            break
        widths[column] = 0
    widths[0] = min(name, max(8, room - taken))
    widths[2] -= max(0, widths[0] + taken - room)
    return widths


def _columns(entry: Entry) -> tuple[str, ...]:
    held = "" if entry.bytes is None else quantities.least(quantities.size(entry.bytes), entry.at_least)
    name = "  " * (entry.level - 1) + visible(entry.name)
    remark = visible(("! " if entry.odd else "") + entry.remark)
    return (name, visible(entry.kind), visible(entry.device), entry.shape, visible(entry.dtype), held, remark)


_RENDER: dict[type, Callable[[Any, _Page], Iterator[str]]] = {
    Heading: _heading,
    Code: _code,
    Remark: _remark,
    Folded: _folded,
    Options: _options,
    Bars: _bars,
    Strip: _strip,
    Table: _table,
}
