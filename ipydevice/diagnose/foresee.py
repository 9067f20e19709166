"""What would fail next, by the texts alone: once an error is mended, the code behind it runs into the next one.

Only meetings of two tensors whose devices both follow from the code count, since no message attests any of them.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from ipydevice.cells import CellHistory
from ipydevice.diagnose import bindings, from_text, locate, printed
from ipydevice.diagnose.finding import Finding, Site
from ipydevice.diagnose.frames import Sources
from ipydevice.diagnose.printed import PrintedSite
from ipydevice.diagnose.reading import HOST, Reading
from ipydevice.diagnose.source import Source
from ipydevice.messages import Mismatch
from ipydevice.text_frames import PastedFrame

_DEEPEST = 3  # calls of functions of the texts
_MEETS = (ast.BinOp, ast.AugAssign, ast.Compare, ast.Call)
_MOST = 400  # places that are looked at
# Methods of a tensor whose argument has to be where it is.
_JOIN = frozenset(
    "matmul mm bmm mv dot add sub mul div addmm baddbmm cross eq ne where masked_fill masked_select".split()
)
# What torch does with tensors from anywhere.
_TAKES_ALL = frozenset("save load device manual_seed no_grad compile is_tensor as_tensor tensor from_numpy".split())
# A host tensor of no dimension may meet those of any device.
_REDUCES = frozenset("sum mean max min norm item prod std var median nanmean any all tensor".split())


def is_mended(mismatch: Mismatch, frames: Sequence[PastedFrame], history: CellHistory) -> bool:
    """Whether the texts, as they are by now, bring together what the error found apart."""
    found = from_text.analyse(mismatch, frames, history)
    if found is None or found.read is None:
        return False
    if found.host_required:
        return found.stray is None or found.read(found.stray.site) == HOST
    if found.stray is not None:
        return found.target is not None and found.read(found.stray.site) == found.target
    devices = {found.read(operand.site) for operand in found.operands if operand.site is not None}
    return len(found.operands) > 1 and len(devices) == 1 and devices != {None}


def foresee(mismatch: Mismatch, frames: Sequence[PastedFrame], history: CellHistory) -> Iterator[Finding]:
    """What would fail behind the innermost of `frames`, in its callers and in the cells below, in this order.

    `mismatch` only says which devices there are.
    """
    sources = Sources(history)
    for number, place in enumerate(_places_behind(printed.sites(frames, history), sources)):
        if number == _MOST:
            return
        found = _found(mismatch, place, sources)
        if found is not None:
            yield found


@dataclass(slots=True)
class _Place:
    """A statement that has not run, and the calls that lead to it."""

    source: Source
    statement: ast.stmt
    outer: tuple[PrintedSite, ...]

    def site(self) -> PrintedSite:
        line = self.statement.lineno
        cell = self.source.cell.number if self.source.cell is not None else None
        function = getattr(self.source.function(self.statement), "name", "<module>")
        frame = PastedFrame(f"In [{cell}]", line, function, self.source.line_text(line), cell)
        return PrintedSite(frame, self.source, self.statement, None, whole=True)


def _places_behind(sites: Sequence[PrintedSite], sources: Sources) -> Iterator[_Place]:
    for number in range(len(sites) - 1, -1, -1):
        site = sites[number]
        scope = site.source.function(site.statement) or site.source.tree
        if site.source.cell is None or not isinstance(scope, (ast.Module, ast.FunctionDef)):
            return  # a file's: no cell's text is to blame
        behind = getattr(site.statement, "end_lineno", 0) or 0
        yield from _places(site.source, scope, behind, tuple(sites[:number]), sources, set())
    last = sites[0].source.cell if sites else None
    cells = sources.history.cells
    for cell in cells[cells.index(last) + 1 :] if last in cells else ():
        source = sources.of_cell(cell)
        yield from _places(source, source.tree, 0, (), sources, set())


def _places(
    source: Source, scope: ast.AST, behind: int, outer: tuple[PrintedSite, ...], sources: Sources, seen: set[str]
) -> Iterator[_Place]:
    """The simple statements of a scope below a line, and those of the functions that they call."""
    simple = [n for n in bindings.own_nodes(scope) if isinstance(n, ast.stmt) and not hasattr(n, "body")]
    for statement in simple:
        if statement.lineno <= behind or isinstance(statement, (ast.Import, ast.ImportFrom, ast.Pass)):
            continue
        place = _Place(source, statement, outer)
        yield place
        for call in ast.walk(statement):
            name = call.func.id if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) else ""
            if name and name not in seen and len(outer) < _DEEPEST and (found := _function(sources, name)) is not None:
                seen.add(name)
                yield from _places(found[0], found[1], 0, (*outer, place.site()), sources, seen)


def _function(sources: Sources, name: str) -> tuple[Source, ast.FunctionDef] | None:
    for source in reversed(sources.all_cells()):
        for node in source.tree.body:
            if isinstance(node, ast.FunctionDef) and node.name == name:
                return source, node
    return None


def _found(mismatch: Mismatch, place: _Place, sources: Sources) -> Finding | None:
    last = place.site()
    nodes = [node for node in ast.walk(place.statement) if isinstance(node, _MEETS)]
    if not nodes:
        return None
    reading = Reading([*place.outer, last], mismatch, sources.history, sources)
    for node in sorted(nodes, key=lambda one: sum(1 for _ in ast.walk(one))):  # inner ones run first
        to_numpy = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "numpy"
        if not to_numpy and not _joins(node, last, reading):
            continue
        seen = [meeting for meeting in from_text.meetings(node, last, mismatch, reading) if meeting.read]
        devices = {meeting.operand.device for meeting in seen}
        if reading.accelerator not in devices or (HOST not in devices and not to_numpy):
            continue
        if to_numpy:
            mismatch = replace(mismatch, family="numpy")
        found = Finding(
            mismatch=mismatch,
            failed=Site(last.source, locate.store_statement(last.source, node)),
            history=sources.history,
            namespace=reading.namespace,
        )
        found.read = reading.at
        found.operands = [meeting.operand for meeting in seen]
        from_text.choose(found, seen, mismatch, reading)
        stray = found.stray
        if stray is None or stray.kind != "tensor" or found.confidence != "likely":
            return None
        if to_numpy or (stray.device == HOST and not _may_have_no_dimension(found)):
            return found
    return None


def _joins(node: ast.AST, last: PrintedSite, reading: Reading) -> bool:
    """Whether the operands have to be on one device: operators, torch's functions, modules, methods of tensors."""
    match node:
        case ast.Compare(ops=ops):
            return not any(isinstance(op, (ast.Is, ast.IsNot, ast.In, ast.NotIn)) for op in ops)
        case ast.BinOp() | ast.AugAssign():
            return True
        case ast.Call(func=ast.Attribute(attr=name) as func) if reading.is_torch(func):
            return name not in _TAKES_ALL
        case ast.Call(func=func) if reading.modules.is_one(func, Site(last.source, func)):
            return True
        case ast.Call(func=ast.Attribute(value=receiver, attr=name)):
            return name in _JOIN and reading.device(receiver, Site(last.source, receiver)) is not None
    return False


def _may_have_no_dimension(found: Finding) -> bool:
    stray = found.stray
    values = [step.value for step in found.chain] + [stray.site.node if stray is not None else None]
    return any(
        isinstance(node, ast.Call)
        and (node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")) in _REDUCES
        for value in values
        if value is not None
        for node in ast.walk(value)
        if not (isinstance(node, ast.Call) and node.args and isinstance(node.args[0], (ast.List, ast.ListComp)))
    )
