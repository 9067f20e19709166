"""What had met when the error was raised and is not there any more: a ``with`` around the call has put it back."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from types import MethodType
from typing import NamedTuple

from ipydevice import placement
from ipydevice.diagnose.evaluate import MISSING, value
from ipydevice.diagnose.finding import Site, Step
from ipydevice.diagnose.frames import Frame
from ipydevice.diagnose.infer import with_index
from ipydevice.diagnose.meeting import Candidate
from ipydevice.diagnose.origin import Tracer
from ipydevice.diagnose.source import Source
from ipydevice.language import say

LET_GO = "a state that is gone"  # the role of such a stray


class Gone(NamedTuple):
    """A stray that cannot be seen, and the fact that tells of it."""

    stray: Candidate
    fact: str


def put_back(users: list[Frame], device: str) -> Gone | None:
    """Other tensors had been put in, and the old ones are back: ``with ema.swapped_in():``."""
    for frame in reversed(users):
        for expr in _contexts(frame):
            live = value(expr, frame.scope)
            if live is MISSING or type(live) is MethodType or placement.is_module(live):
                continue
            found = next((f for f in placement.walk(live) if placement.device_of(f.value) == device), None)
            if found is None or frame.source is None:
                continue
            stray = Candidate(
                frame, expr, "", device, found.path, found.value, True, found.via or "", found.owner,
                found.attribute, live,
            )  # fmt: skip
            name = f"{frame.source.segment(expr)}{found.path}"
            return Gone(
                stray, say("{name} is on {device}, and all that is seen now is elsewhere", name=name, device=device)
            )
    return None


def _contexts(frame: Frame) -> Iterator[ast.expr]:
    """``ema.swapped_in()``, ``ema.swapped_in`` and ``ema`` of the statements around what runs in a frame."""
    if frame.source is None or frame.node is None:
        return
    around = [up for up in frame.source.ancestors(frame.node) if isinstance(up, (ast.With, ast.AsyncWith))]
    for expr in (item.context_expr for up in around for item in up.items):
        while isinstance(expr, (ast.Call, ast.Attribute)):
            expr = expr.func if isinstance(expr, ast.Call) else expr.value
            yield expr


def let_go(frame: Frame, device: str, tracer: Tracer) -> Gone | None:
    """An attribute on the line that is None by now, and that the code sets to something and to None again."""
    for node in ast.walk(frame.node) if frame.node is not None else ():
        if not isinstance(node, ast.Attribute) or value(node, frame.scope) is not None:
            continue
        given = [assigned.value for _, assigned in _assignments(node.attr, tracer)]
        if any(_is_none(one) for one in given) and not all(_is_none(one) for one in given):
            stray = Candidate(frame, node, LET_GO, with_index(device), result=True)
            fact = say("{name} is None by now: something has set it back since", name=ast.unparse(node))
            return Gone(stray, fact)
    return None


def origin(attribute: str, tracer: Tracer) -> list[Step]:
    """The assignment that gave an attribute its first value, outside of the class where there is such a one."""
    real = [(source, node) for source, node in _assignments(attribute, tracer) if not _is_none(node.value)]
    outside = [(source, node) for source, node in real if not ast.unparse(node.targets[0]).startswith("self.")]
    return [Step("attribute", Site(source, node), node.value) for source, node in (outside or real)[:1]]


def _assignments(attribute: str, tracer: Tracer) -> Iterator[tuple[Source, ast.Assign]]:
    for source in tracer.sources.all_cells():
        for node in source.nodes:
            match node:
                case ast.Assign(targets=[ast.Attribute(attr=name)]) if name == attribute:
                    yield source, node


def _is_none(expr: ast.expr) -> bool:
    return isinstance(expr, ast.Constant) and expr.value is None
