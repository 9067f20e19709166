"""A source line with its operands underlined and their devices below, as rustc sets its labels."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from ipydevice.diagnosis import Mark
from ipydevice.show import quantities
from ipydevice.show.escape import cells, crop, visible


@dataclass(slots=True)
class Piece:
    """Text at a display column. `role` is "", "mark", "stray" or "quiet"."""

    column: int
    text: str
    role: str = ""
    device: str = ""


@dataclass(slots=True)
class _Span:
    start: int  # display columns, end exclusive
    end: int
    mark: Mark


def lay_out(source: str, marks: Sequence[Mark], width: int | None = None) -> list[list[Piece]]:
    """The source line, the underlines, and the labels.

    A label stands exactly under its operand; where the next one would run into it, it moves
    a line down and a bar leads to it.  `width` in columns crops a long line around the marks.
    """
    columns = [0]
    shown: list[str] = []
    for character in source:
        piece = visible(character)
        shown.append(piece)
        columns.append(columns[-1] + cells(piece))
    spans = _spans(marks, columns)
    text, spans = _window(shown, columns, spans, width)
    lines = [_source_line(text, spans)]
    if not spans:
        return lines
    role = ["stray" if span.mark.stray else "mark" for span in spans]
    lines.append([Piece(s.start, "─" * (s.end - s.start), r, s.mark.device) for s, r in zip(spans, role, strict=True)])
    lines.extend(_labels(spans, width))
    _append_shapes(lines[2], spans, width)
    return lines


def _spans(marks: Sequence[Mark], columns: list[int]) -> list[_Span]:
    last = len(columns) - 1
    spans: list[_Span] = []
    for mark in sorted(marks, key=lambda m: (m.start, m.end)):
        start, end = max(0, min(mark.start, last)), max(0, min(mark.end, last))
        if columns[end] > columns[start] and (not spans or columns[start] >= spans[-1].end):
            spans.append(_Span(columns[start], columns[end], mark))
    return spans


def _window(shown: list[str], columns: list[int], spans: list[_Span], width: int | None) -> tuple[str, list[_Span]]:
    total = columns[-1]
    if width is None or total <= width:
        return "".join(shown), spans
    room = max(8, width - 2)  # an ellipsis on each side
    first = spans[0].start if spans else 0
    last = spans[-1].end if spans else 0
    if last - first > room:
        stray = next((span for span in spans if span.mark.stray), spans[0])
        first, last = stray.start, min(stray.end, stray.start + room)
    begin = max(0, min(first - (room - (last - first)) // 2, total - room))
    end = begin + room
    kept = "".join(p for p, at in zip(shown, columns, strict=False) if at >= begin and at + cells(p) <= end)
    shift = next((at for at in columns if at >= begin), begin)
    lead = 1 if begin else 0
    text = ("…" if begin else "") + kept + ("…" if end < total else "")
    moved = [
        _Span(max(s.start, shift) - shift + lead, min(s.end, end) - shift + lead, s.mark)
        for s in spans
        if s.start < end and s.end > shift
    ]
    return text, moved


def _source_line(text: str, spans: list[_Span]) -> list[Piece]:
    """The text cut at the marks, so that a view may colour the operands."""
    pieces: list[Piece] = []
    column = 0
    rest = text
    for span in spans:
        before, rest = _split(rest, span.start - column)
        inside, rest = _split(rest, span.end - span.start)
        if before:
            pieces.append(Piece(column, before))
        pieces.append(Piece(span.start, inside, "stray" if span.mark.stray else "mark", span.mark.device))
        column = span.end
    if rest:
        pieces.append(Piece(column, rest))
    return pieces


def _split(text: str, width: int) -> tuple[str, str]:
    used = 0
    for index, character in enumerate(text):
        step = cells(character)
        if used + step > width:
            return text[:index], text[index:]
        used += step
    return text, ""


def _labels(spans: list[_Span], width: int | None) -> list[list[Piece]]:
    """Rows of labels; the rightmost labels take the upper rows."""
    rows: list[list[Piece]] = []
    waiting = spans
    while waiting:
        row: list[Piece] = []
        later: list[_Span] = []
        limit: float = math.inf if width is None else width  # column before which the next label has to end
        for span in reversed(waiting):
            label = visible(span.mark.device)
            column = span.start
            if width is not None:  # at the right edge a label moves to the left
                label = crop(label, width)
                column = min(column, width - cells(label))
            role = "stray" if span.mark.stray else "mark"
            if column + cells(label) <= limit or not row:
                row.append(Piece(column, label, role, span.mark.device))
                limit = column - 2
            else:
                later.append(span)
                if span.start < limit:
                    row.append(Piece(span.start, "│", role, span.mark.device))
                    limit = span.start - 1
        rows.append(row[::-1])
        waiting = later[::-1]
    return rows


def _append_shapes(row: list[Piece], spans: list[_Span], width: int | None) -> None:
    shapes = [quantities.typed_shape(s.mark.dtype, s.mark.shape) for s in spans]
    text = visible(" · ".join(shape for shape in shapes if shape))
    column = row[-1].column + cells(row[-1].text) + 8
    if text and (width is None or column + cells(text) <= width):
        row.append(Piece(column, text, "quiet"))
