"""From an error's text, and the sources it speaks of, to a `Finding`: no frame is left, nothing is run.

Where each thing is, is read from how the code makes and moves it (`reading`), and from the
device that the message states for a named argument.  What only the text supports is "likely" at best.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass

from ipydevice.cells import CellHistory
from ipydevice.diagnose import locate, printed
from ipydevice.diagnose.causes import Facts, classify
from ipydevice.diagnose.evaluate import MISSING
from ipydevice.diagnose.finding import Finding, Operand, Site, Stray
from ipydevice.diagnose.printed import PrintedSite
from ipydevice.diagnose.reading import HOST, Reading
from ipydevice.messages import Mismatch
from ipydevice.text_frames import PastedFrame

__all__ = ["analyse"]


def analyse(mismatch: Mismatch, frames: Sequence[PastedFrame], history: CellHistory | None = None) -> Finding | None:
    """Everything the text tells; None where it shows no line of the user's.

    `frames` are those of the traceback; of an embedded one (a worker's, a replica's) those of `mismatch` come after
    them.  `history` holds the cells of the notebook, where there is one; nothing in it is run.
    """
    history = history or CellHistory()
    inner = tuple(
        PastedFrame(f.file, f.line, f.function, f.source, around=((f.line, f.source),)) for f in mismatch.frames
    )
    sites = printed.sites((*frames, *inner), history)
    if not sites:
        return None
    reading = Reading(sites, mismatch, history)
    last = sites[-1]
    node, seen = _running(last, mismatch, reading)
    site = Site(last.source, locate.store_statement(last.source, node))
    found = Finding(mismatch=mismatch, failed=site, history=history, namespace=reading.namespace)
    if mismatch.kind == "availability":
        found.cause = "no_accelerator"
        return found
    found.operands = [meeting.operand for meeting in seen]
    _choose(found, seen, mismatch, reading)
    return found


@dataclass(slots=True)
class _Meeting:
    """One operand, and whether its device follows from the code rather than from the message."""

    operand: Operand
    site: Site
    read: bool


def _running(last: PrintedSite, mismatch: Mismatch, reading: Reading) -> tuple[ast.AST, list[_Meeting]]:
    """The expression that failed, and what met in it: the marked one, else the one whose operands differ."""
    if last.node is not None:
        seen = _meetings(last.node, last, mismatch, reading)
        if seen:
            return last.node, seen
    candidates = [
        node
        for node in ast.walk(last.statement)
        if isinstance(node, (ast.Call, ast.BinOp, ast.Subscript, ast.Compare, ast.AugAssign))
    ]
    named = [node for node in candidates if _is_named(node, last.below, mismatch)]
    read = [(node, _meetings(node, last, mismatch, reading)) for node in named or candidates]
    for node, seen in read:
        devices = {meeting.operand.device for meeting in seen if meeting.read}
        if len(devices - {None}) > 1:
            return node, seen
    wanted = [(node, seen) for node, seen in read if any(m.operand.device for m in seen)]
    if wanted:
        return wanted[0]
    return (last.statement, []) if not read else read[0]


_OPERATORS = {
    "add": ast.Add, "sub": ast.Sub, "mul": ast.Mult, "div": ast.Div, "mm": ast.MatMult, "bmm": ast.MatMult,
    "matmul": ast.MatMult, "addmm": ast.MatMult, "pow": ast.Pow, "remainder": ast.Mod,
}  # fmt: skip


def _is_named(node: ast.AST, below: str | None, mismatch: Mismatch) -> bool:
    """Whether the frame below, or the message's op, is what this node calls."""
    op = (mismatch.op or "").strip("_")
    if isinstance(node, ast.Call):
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        return name == below or (below is None and bool(op) and name.strip("_") == op)
    if below is not None:
        return False
    if isinstance(node, (ast.BinOp, ast.AugAssign)):
        return isinstance(node.op, _OPERATORS.get(op, ()))
    return isinstance(node, ast.Subscript) and mismatch.family.startswith("index")


def _meetings(node: ast.AST, last: PrintedSite, mismatch: Mismatch, reading: Reading) -> list[_Meeting]:
    """What meets in `node`; of a call of a module also the module."""
    found = []
    for expression, role in locate.operands(node):
        if role == "callee" and not reading.is_module(expression, Site(last.source, expression)):
            continue
        if role == "receiver" and isinstance(expression, ast.Name) and expression.id in reading.libraries:
            continue
        site = Site(last.source, expression)
        device = reading.device(expression, site)
        told = reading.told(role, node, is_module=role == "callee") if device is None else None
        found.append(
            _Meeting(
                Operand(
                    site=site,
                    expression=last.source.segment(expression),
                    device=device or told,
                    kind="module" if role == "callee" else "tensor",
                    role=role,
                ),
                site,
                read=device is not None,
            )
        )
    return [meeting for meeting in found if not isinstance(meeting.site.node, ast.Constant)]


def _choose(found: Finding, seen: list[_Meeting], mismatch: Mismatch, reading: Reading) -> None:
    """Which of them is the stray: by the rule where one wants the host, else the one left on the host."""
    known = [meeting for meeting in seen if meeting.operand.device is not None]
    if mismatch.family == "numpy" or mismatch.host_required:
        found.host_required = True
        accelerated = [m for m in seen if m.operand.device not in (None, HOST)] or [
            m for m in seen if m.operand.role == "receiver"
        ]
        _name(found, accelerated[0] if accelerated else None, None, HOST, reading)
        return
    hosts = [m for m in known if m.operand.device == HOST]
    others = [m for m in known if m.operand.device != HOST]
    if not hosts and len(others) > 1 and len({m.operand.device for m in others}) > 1:
        hosts, others = others[1:], others[:1]  # between two cards nothing tells which is right
        hosts[0].read = False
    unknown = [m for m in seen if m.operand.device is None]
    if not hosts and others and len(unknown) == 1 and HOST in mismatch.devices:
        unknown[0].operand.device = HOST  # by elimination
        hosts = unknown
    if not others and hosts and len(unknown) == 1 and reading.accelerator is not None:
        unknown[0].operand.device = reading.accelerator
        others = unknown
    target = others[0].operand.device if others else reading.accelerator
    _name(found, hosts[0] if hosts else None, others[0] if others else None, target, reading)


def _name(found: Finding, stray: _Meeting | None, other: _Meeting | None, target: str | None, reading: Reading) -> None:
    if stray is None or target is None:
        return
    device = stray.operand.device or reading.accelerator or ""
    found.stray = Stray(stray.site, "", device, stray.operand.kind, value=MISSING)
    found.other = other.operand if other is not None else None
    found.target = target
    found.chain = reading.tracer.trace(stray.site, device)
    found.cause = reading.cause(stray.site, stray.operand.kind) or _classified(found, reading)
    agreed = stray.read and (found.host_required or (other is not None and other.read))
    found.confidence = "likely" if agreed and found.mismatch.confidence == "exact" else "guess"
    found.evidence = reading.evidence(stray.site, other.site if other is not None else None)


def _classified(found: Finding, reading: Reading) -> str:
    try:
        return classify(Facts(found, reading.tracer, []))
    except (AttributeError, IndexError, TypeError):  # a rule that wants live objects
        return "unknown"
