"""Tree -> static, self-contained HTML without script.

It has to read well where the style sheet is taken out (code hosts, untrusted notebooks),
so the marks below the source line are text in a `<pre>`, and order and words carry all
that colour does.
"""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from ipydevice.language import Sentence, joined, say
from ipydevice.show import quantities
from ipydevice.show.colours import colour
from ipydevice.show.escape import cells, visible
from ipydevice.show.marks import lay_out
from ipydevice.show.tree import (
    Bars,
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
    Segment,
    Strip,
    Table,
)

_BACKTICKS = re.compile(r"`([^`]+)`")
STATIC_ROWS = 300  # they stay in the saved file; the widget has all
_COLUMNS: tuple[Sentence, ...] = ("name", "kind", "device", "type", "bytes", "remark")


def render(panel: Panel) -> str:
    return f"<style>{style()}</style>{body(panel)}"


def body(panel: Panel, *, rows: bool = True) -> str:
    """The panel without its style sheet; without the table's rows for the widget, which draws them itself."""
    blocks = [replace(b, entries=(), left=0) if isinstance(b, Table) and not rows else b for b in panel.blocks]
    if panel.fold is not None:
        blocks = [block for block in blocks if block is not blocks[0] or not isinstance(block, Heading)]
    inside = "".join(_RENDER[type(block)](block) for block in blocks)
    if panel.fold is not None:
        aside = f' <small class="ipd-quiet">{_text(panel.fold.aside)}</small>'
        line = f'<span class="ipd-sign">✗</span> <strong>{_text(panel.fold.text)}</strong>{aside}'
        inside = f'<details class="ipd-fold"><summary>{line}</summary>{inside}</details>'
    tone = " ipd-plain" if any(isinstance(b, Heading) and b.tone == "plain" for b in blocks) else ""
    return f'<div class="ipydevice{tone}" role="region" aria-label="{_text(panel.label)}">{inside}</div>'


@cache
def style() -> str:
    return re.sub(r"\s*\n\s*", "", re.sub(r"/\*.*?\*/", "", asset("panel.css"), flags=re.DOTALL))


def asset(name: str) -> str:
    """Text of a file in ``static/``; a plain path, since importlib.resources takes 5 ms to load."""
    return Path(__file__).with_name("static").joinpath(name).read_text(encoding="utf-8")


def _text(text: str) -> str:
    return html.escape(visible(text))


def _prose(text: str) -> str:
    """`code` between backticks as <code>."""
    return _BACKTICKS.sub(r"<code>\1</code>", _text(text))


def _heading(heading: Heading) -> str:
    sign = '<span class="ipd-sign">✗</span> ' if heading.tone == "error" else ""
    aside = f' <small class="ipd-quiet">{_text(heading.aside)}</small>' if heading.aside else ""
    return f'<div class="ipd-heading">{sign}<strong>{_text(heading.text)}</strong>{aside}</div>'


def _code(code: Code) -> str:
    lines: list[str] = []
    for index, pieces in enumerate(lay_out(code.source, code.marks)):
        line = ""
        column = 0
        for piece in pieces:
            line += " " * (piece.column - column)
            text = html.escape(piece.text)
            line += f'<span class="ipd-{piece.role}">{text}</span>' if piece.role else text
            column = piece.column + cells(piece.text)
        # The underline says nothing to a screen reader; the devices in the next line do.
        lines.append(f'<span aria-hidden="true">{line}</span>' if index == 1 else line)
    below = "".join(_code(Code(say("line {line}", line=one.line), one.source, one.marks)) for one in code.further)
    return f'<div class="ipd-code"><small>{_text(code.label)}</small><pre>{chr(10).join(lines)}</pre></div>{below}'


def _remark(remark: Remark) -> str:
    return f'<div class="ipd-line"><b>{_text(remark.label)}</b> <span>{_prose(remark.text)}</span></div>'


def _folded(folded: Folded) -> str:
    inside = "".join(map(_remark, folded.remarks))
    return f'<details class="ipd-why"><summary>{_text(folded.summary)}</summary>{inside}</details>'


def _options(options: Options) -> str:
    return f'<ol class="ipd-fixes" aria-label="{say("Fixes")}">{"".join(map(_option, options.options))}</ol>'


def _option(option: Option) -> str:
    reruns = say("re-runs {cells}", cells=joined(option.reruns)) + " · " if option.reruns else ""
    said = f'<span class="ipd-reruns">{_text(reruns)}</span>' if reruns else ""
    note = f'<div class="ipd-note">{_prose(option.note)}</div>' if option.note else ""
    change = ""
    if option.diff:
        opened = " open" if option.number == 1 and len(option.diff) <= 4 else ""
        lines = _diff(option.diff)
        change = (
            f'<details{opened}><summary>{say("what changes")}</summary><pre class="ipd-diff">{lines}</pre></details>'
        )
    return (
        f'<li value="{option.number}" data-fix="{option.number - 1}"><span>{_prose(option.title)}</span> '
        f'<small class="ipd-quiet">{said}<code>{_text(option.command)}</code></small>{note}{change}</li>'
    )


def _diff(lines: Sequence[DiffLine]) -> str:
    marked = {"+": "ins", "-": "del"}
    shown: list[str] = []
    for line in lines:
        sign = "" if line.kind == "@" else f"{line.kind} "
        text = html.escape(sign) + _text(line.text)
        tag = marked.get(line.kind)
        shown.append(f"<{tag}>{text}</{tag}>" if tag else f"<b>{text}</b>" if line.kind == "@" else text)
    return "\n".join(shown)


def _bars(bars: Bars) -> str:
    rows = "".join(
        f"<tr><th scope=row>{_text(bar.device)}</th>"
        '<td aria-hidden="true"><div class="ipd-bar">'
        f'<i style="width:{bar.share * 100:.1f}%;background:{colour(bar.device)}"></i></div></td>'
        f"<td>{bar.amount}</td></tr>"
        for bar in bars.bars
    )
    return f'<table class="ipd-bars" aria-label="{say("Bytes by device")}"><tbody>{rows}</tbody></table>'


def _strip(strip: Strip) -> str:
    """Blocks as wide as they have layers; the list below says the same in words."""
    blocks = "".join(
        f'<i style="flex:{segment.count};background:{colour(segment.device)}" title="{_text(_run(segment))}">'
        f"{_text(segment.device)}</i>"
        for segment in strip.segments
    )
    words = say("; ").join(_run(segment) for segment in strip.segments)
    return (
        f'<div class="ipd-layers"><b>{_text(strip.name)}</b> <div class="ipd-strip" aria-hidden="true">{blocks}</div>'
        f"<small>{_text(words)}</small></div>"
    )


def _run(segment: Segment) -> str:
    first, layers = segment.first or say("itself"), quantities.plural(segment.count, "layer")
    reach = first if segment.count == 1 else say("{first} to {last}", first=first, last=segment.last)
    return say("{layer} on {device} ({layers})", layer=reach, device=segment.device, layers=layers)


def _table(table: Table) -> str:
    table = table.within(STATIC_ROWS)
    aside = f' <small class="ipd-quiet">{_text(table.aside)}</small>' if table.aside else ""
    # Frames come with the user's first, so all from the first closed one on are a library's.
    libraries = next((i for i, e in enumerate(table.entries) if e.kind == "frame" and not e.open), len(table.entries))
    rows = _grid(table.entries[:libraries])
    if libraries < len(table.entries):
        rest = table.entries[libraries:]
        names = quantities.plural(sum(not e.header for e in rest), "name")
        rows += f"<details><summary>{say('{names} in library frames', names=names)}</summary>{_grid(rest)}</details>"
    more = say("and {count} more", count=quantities.least(f"{table.left:,}", table.at_least))
    left = f'<p class="ipd-quiet">{more}: <code>%devices</code></p>' if table.left else ""
    # The widget puts its own table in the place of ipd-rows: one that sorts, filters and holds 10,000 names.
    opened = "" if table.folded else " open"
    return (
        f'<details class="ipd-table"{opened}><summary>{_text(table.summary)}{aside}</summary>'
        f'<div class="ipd-rows">{rows}{left}</div></details>'
    )


def _grid(entries: Sequence[Entry]) -> str:
    if not entries:
        return ""
    head = "".join(f"<th scope=col>{say(column)}</th>" for column in _COLUMNS)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(map(_row, entries))}</tbody></table>"


def _row(entry: Entry) -> str:
    if entry.header and not entry.device:
        return f"<tr><th colspan=6 scope=rowgroup>{_text(entry.name)} <small>{_text(entry.remark)}</small></th></tr>"
    held = "" if entry.bytes is None else quantities.least(quantities.size(entry.bytes), entry.at_least)
    indent = "\u2003" * (entry.level - 1)
    remark = f"<strong>! {_text(entry.remark)}</strong>" if entry.odd else _text(entry.remark)
    columns = (
        indent + _text(entry.name),
        _text(entry.kind),
        _text(entry.device),
        _text(entry.dtype + entry.shape),
        held,
        remark,
    )
    filled = columns if remark else columns[:-1]  # 300 rows stay in the file: every byte counts
    return f"<tr>{''.join(f'<td>{column}</td>' for column in filled)}</tr>"


_RENDER: dict[type[Block], Callable[[Any], str]] = {
    Heading: _heading,
    Code: _code,
    Remark: _remark,
    Folded: _folded,
    Options: _options,
    Bars: _bars,
    Strip: _strip,
    Table: _table,
}
