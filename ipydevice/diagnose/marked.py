"""Where the operands of the failing call stand in the user's text, by line and column."""

from __future__ import annotations

import ast
from itertools import takewhile

from ipydevice import placement
from ipydevice.diagnose.finding import Finding, Operand
from ipydevice.diagnose.source import Source
from ipydevice.diagnosis import Mark, MarkedLine

MOST_LINES = 20  # of a call


def marks(finding: Finding) -> tuple[Mark, ...]:
    """The operands that stand on the failing line, by columns of that line without its indentation."""
    line = getattr(finding.failed.node, "lineno", None)
    return () if line is None else _marks_of(finding, line)


def further(finding: Finding) -> tuple[MarkedLine, ...]:
    """The lines below it that belong to the call and hold operands."""
    source, node = finding.failed.source, finding.failed.node
    first, last = getattr(node, "lineno", None), getattr(node, "end_lineno", None)
    if first is None or last is None:
        return ()
    found = []
    for line in range(first + 1, min(last, len(source.lines)) + 1):
        on_it = _marks_of(finding, line)
        if on_it:
            deeper = max(0, _indent(source, line) - _indent(source, first))
            found.append(MarkedLine(source.raw_line(line), source.line_text(line), on_it, deeper))
    return tuple(found[:MOST_LINES])


def _marks_of(finding: Finding, line: int) -> tuple[Mark, ...]:
    """Of an operand that goes on below the part on its first line is marked."""
    source = finding.failed.source
    if not 0 < line <= len(source.lines):
        return ()
    compiled, indent = source.lines[line - 1], _indent(source, line)
    found: dict[tuple[int, int], Mark] = {}
    for operand in finding.operands:
        site = operand.site
        node = site.node if site is not None else None
        if site is None or site.source is not source or not isinstance(node, ast.expr) or operand.device is None:
            continue
        if node.lineno != line:
            continue
        end = len(compiled.rstrip()) if node.end_lineno != line else source.column(line, node.end_col_offset or 0)
        start, end = source.column(line, node.col_offset) - indent, end - indent
        shift = _shift(source.line_text(line), compiled.strip(), start, end)
        if shift is None:
            continue
        start, end = start + shift, end + shift
        mark = _mark(operand, start, end, finding)
        if (start, end) not in found or mark.stray:
            found[start, end] = mark
    return tuple(sorted(found.values(), key=lambda mark: mark.start))


def _indent(source: Source, line: int) -> int:
    text = source.lines[line - 1]
    return len(text) - len(text.lstrip())


def _shift(written: str, compiled: str, start: int, end: int) -> int | None:
    """How much further an operand stands in the line as written: ``f(x)`` is the end of ``%timeit -n1 f(x)``."""
    if written[:end] == compiled[:end]:
        return 0
    alike = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(written[::-1], compiled[::-1], strict=False)))
    return len(written) - len(compiled) if start >= len(compiled) - alike else None


def _mark(operand: Operand, start: int, end: int, finding: Finding) -> Mark:
    is_tensor = operand.known and placement.is_tensor(operand.value)
    stray = finding.stray
    same_device = stray is not None and operand.device == stray.device
    return Mark(
        start=start,
        end=end,
        device=operand.device or "?",
        expression=operand.expression,
        shape=placement.shape_of(operand.value) if is_tensor else None,
        dtype=placement.dtype_of(operand.value) if is_tensor else None,
        stray=same_device,
    )
