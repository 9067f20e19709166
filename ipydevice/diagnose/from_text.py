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

__all__ = ["Meeting", "analyse", "choose", "meetings"]


def analyse(mismatch: Mismatch, frames: Sequence[PastedFrame], history: CellHistory | None = None) -> Finding | None:
    """Everything the text tells; None where it shows no line of the user's.

    `frames` are those of the traceback; of an embedded one (a worker's, a replica's) those of `mismatch` come after
    them.  `history` holds the cells of the notebook, where there is one; nothing in it is run.
    """
    # A copy: lines that are printed of a cell that is not at hand are added to it.
    history = CellHistory(list(history.cells), history.transform, history.name_of) if history else CellHistory()
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
    found.read = reading.at
    if mismatch.kind == "availability":
        found.cause = "no_accelerator"
        return found
    optimizer = _optimizer(last)
    if optimizer is not None and HOST in mismatch.devices and reading.accelerator is not None:
        _name_state(found, optimizer, reading)
        return found
    found.operands = [meeting.operand for meeting in seen]
    choose(found, seen, mismatch, reading)
    if found.stray is None and mismatch.family == "tensoriterator":
        # The message does not tell which of the operators it was.
        found.operands = _all_operands(last, mismatch, reading) or found.operands
    return found


def _all_operands(last: PrintedSite, mismatch: Mismatch, reading: Reading) -> list[Operand]:
    """What the line that failed computes with, in the order in which it is written."""
    nodes = [node for node in ast.walk(last.statement) if isinstance(node, (ast.BinOp, ast.AugAssign, ast.Compare))]
    found = [meeting.operand for node in nodes for meeting in meetings(node, last, mismatch, reading)]
    places = {
        (node.lineno, node.col_offset): one
        for one in found
        if one.site is not None and isinstance(node := one.site.node, (ast.Name, ast.Attribute, ast.Subscript))
    }
    return [one for _, one in sorted(places.items(), key=lambda place: place[0])]


@dataclass(slots=True)
class Meeting:
    """One operand, and whether its device follows from the code rather than from the message."""

    operand: Operand
    site: Site
    read: bool


def _running(last: PrintedSite, mismatch: Mismatch, reading: Reading) -> tuple[ast.AST, list[Meeting]]:
    """The expression that failed, and what met in it: the marked one, else the first whose operands differ."""
    if last.node is not None:
        seen = meetings(last.node, last, mismatch, reading)
        if seen:
            return last.node, seen
    candidates = [node for node in ast.walk(last.statement) if isinstance(node, _MEETS) and not _is_move(node)]
    candidates.sort(key=_size)  # inner ones run first
    if last.below is None and mismatch.family == "tensoriterator":
        # What a module's forward raises is printed with its frames: this is an operator's.
        own = [node for node in candidates if not _calls_module(node, last, reading)]
        candidates = own if any(isinstance(node, (ast.BinOp, ast.AugAssign)) for node in own) else candidates
    named = [node for node in candidates if _is_named(node, last, mismatch, reading)]
    if last.below in _CALLED:
        modules = [node for node in named if isinstance(node, ast.Call) and _holds_tensors(node.func, last, reading)]
        named = [*modules, *(node for node in named if node not in modules)]
    read = [(node, meetings(node, last, mismatch, reading)) for node in named or candidates]
    for node, seen in read:
        if len({meeting.operand.device for meeting in seen if meeting.read} - {None}) > 1:
            return node, seen
    for fewest in (2, 1):
        for wanted in ({HOST}, {HOST, None}):
            for node, seen in read:
                devices = {meeting.operand.device for meeting in seen}
                if len(seen) >= fewest and devices & wanted and (devices - {None}):
                    return node, seen
    return read[0] if read else (last.statement, [])


_MEETS = (ast.Call, ast.BinOp, ast.Subscript, ast.Compare, ast.AugAssign, ast.Assign)


def _runs_module(last: PrintedSite, mismatch: Mismatch) -> bool:
    """Whether the line that failed called a module of torch.nn, whose class the text need not show."""
    return last.below in _CALLED or "/torch/nn/modules/" in last.below_file or mismatch.family == "rnn"


_CALLED = ("_wrapped_call_impl", "_call_impl", "__call__")  # of nn.Module


def _is_move(node: ast.AST) -> bool:
    """``x.to(device)``: takes tensors from anywhere."""
    return (
        isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in ("to", "cuda", "cpu")
    )


def _calls_module(node: ast.AST, last: PrintedSite, reading: Reading) -> bool:
    return isinstance(node, ast.Call) and reading.modules.is_one(node.func, Site(last.source, node.func))


def _holds_tensors(callee: ast.expr, last: PrintedSite, reading: Reading) -> bool:
    """Whether a module with parameters is called."""
    site = Site(last.source, callee)
    return reading.modules.is_one(callee, site) and reading.modules.holds_tensors(site)


def _size(node: ast.AST) -> int:
    return sum(1 for _ in ast.walk(node))


_OPERATORS = {
    "add": ast.Add, "sub": ast.Sub, "mul": ast.Mult, "div": ast.Div, "mm": ast.MatMult, "bmm": ast.MatMult,
    "matmul": ast.MatMult, "addmm": ast.MatMult, "pow": ast.Pow, "remainder": ast.Mod,
}  # fmt: skip


def _is_named(node: ast.AST, last: PrintedSite, mismatch: Mismatch, reading: Reading) -> bool:
    """Whether the frame below, or the message's op, is what this node calls."""
    op, below = (mismatch.op or "").strip("_"), last.below
    if mismatch.family == "generator":
        return isinstance(node, ast.Call) and any(keyword.arg == "generator" for keyword in node.keywords)
    if isinstance(node, ast.Call) and below in _CALLED:
        return not reading.is_library(node.func) and isinstance(node.func, (ast.Name, ast.Attribute, ast.Subscript))
    if isinstance(node, ast.Call):
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        return name == below or (below is None and bool(op) and name.strip("_") == op)
    if below is not None:
        return False
    if isinstance(node, (ast.BinOp, ast.AugAssign)):
        return isinstance(node.op, _OPERATORS.get(op, ()))
    return isinstance(node, ast.Subscript) and mismatch.family.startswith("index")


def meetings(node: ast.AST, last: PrintedSite, mismatch: Mismatch, reading: Reading) -> list[Meeting]:
    """What meets in `node`; of a call of a module also the module."""
    callee = node.func if isinstance(node, ast.Call) else None
    is_module = callee is not None and (
        reading.modules.is_one(callee, Site(last.source, callee))
        or (_runs_module(last, mismatch) and not reading.is_library(callee))
    )
    found = []
    for expression, role in locate.operands(node):
        if role == "callee" and not (is_module and reading.modules.holds_tensors(Site(last.source, expression))):
            continue
        if (
            role == "**"
            or (role == "receiver" and (is_module or reading.is_library(expression)))
            or not _may_be_tensor(expression)
        ):
            continue
        site = Site(last.source, expression)
        device = reading.device(expression, site) if role != "callee" else reading.modules.device(site)
        told = reading.told(role, node, is_module=is_module)
        operand = Operand(
            site=site,
            expression=last.source.segment(expression),
            device=told or device,  # the message knows better than the code's text
            kind="module" if role == "callee" else "tensor",
            role=role,
        )
        found.append(Meeting(operand, site, read=device is not None and told in (None, device)))
    return found


def _may_be_tensor(node: ast.expr) -> bool:
    """False for numbers, texts and the like."""
    match node:
        case (
            ast.Constant() | ast.Starred() | ast.Slice() | ast.Lambda() | ast.JoinedStr() | ast.Name(id="self" | "cls")
        ):
            return False
        case ast.UnaryOp():
            return _may_be_tensor(node.operand)
        case ast.Attribute(attr=name):
            return name not in ("shape", "dtype", "device", "ndim")
        case ast.Subscript():
            return _may_be_tensor(node.value)
        case ast.Call(func=ast.Name(id="len" | "int" | "range" | "float" | "str")):
            return False
        case ast.Call(func=ast.Attribute(attr="size" | "dim" | "numel" | "item" | "tolist")):
            return False
        case ast.BinOp():
            return _may_be_tensor(node.left) or _may_be_tensor(node.right)
    return True


def choose(found: Finding, seen: list[Meeting], mismatch: Mismatch, reading: Reading) -> None:
    """Which of them is the stray: by the rule where one wants the host, else the one left on the host."""
    if mismatch.kind == "meta":
        return  # the texts that made the weights do not tell which were never loaded
    if mismatch.family == "numpy" or mismatch.host_required:
        found.host_required = True
        _name(found, _wanted_on_host(seen, mismatch), None, HOST, reading)
        return
    if mismatch.family == "generator":
        drawn = next((m for m in seen if m.operand.role == "generator"), None)
        if drawn is not None and len(mismatch.devices) > 1:
            drawn.operand.device, drawn.operand.kind = mismatch.devices[1], "generator"
            _name(found, drawn, None, mismatch.devices[0], reading)
        return
    hosts = [m for m in seen if m.operand.device == HOST]
    others = [m for m in seen if m.operand.device not in (None, HOST)]
    if not hosts and len({m.operand.device for m in others}) > 1:
        others.sort(key=lambda m: m.operand.kind != "module")  # between two cards a tensor goes to the module
        others, hosts = others[:1], others[1:]
        hosts[0].read = False
    _fill_by_elimination(hosts, others, seen, reading)
    index = next((m for m in others if m.operand.role == "index"), None)
    if index is not None and hosts and (not hosts[0].read or reading.moves_result(index.site)):
        _name(found, index, hosts[0], HOST, reading)  # of a table that belongs on the host
        return
    hosts.sort(key=lambda m: not m.read)
    target = others[0].operand.device if others else reading.accelerator
    _name(found, hosts[0] if hosts else None, others[0] if others else None, target, reading)


def _optimizer(last: PrintedSite) -> Site | None:
    """The optimizer whose step() failed inside of torch.optim."""
    if "/optim/" not in last.below_file:
        return None
    for node in ast.walk(last.statement):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "step":
            return Site(last.source, node.func.value)
    return None


def _name_state(found: Finding, optimizer: Site, reading: Reading) -> None:
    """Gradients are where their parameters are, so what a step finds elsewhere is the optimizer's own state."""
    found.stray = Stray(optimizer, ".state", HOST, "optimizer", value=MISSING)
    found.target = reading.accelerator
    found.chain = reading.chain(optimizer, HOST, "optimizer")
    found.cause = "optimizer_state"
    found.evidence = reading.evidence(optimizer, None)


def _wanted_on_host(seen: list[Meeting], mismatch: Mismatch) -> Meeting | None:
    """The argument that a rule wants on the host: by its name, else what the code has on an accelerator."""
    wanted = mismatch.host_required or mismatch.argument or ""
    seen = [meeting for meeting in seen if meeting.operand.device != HOST]
    for meeting in seen:
        if wanted and wanted in (meeting.operand.role, *meeting.operand.expression.split(".")):
            return meeting
    if wanted == "lengths":
        return next((m for m in seen if m.operand.role == "1"), None)
    on_card = [m for m in seen if m.operand.device not in (None, HOST)]
    receivers = [m for m in seen if m.operand.role == "receiver"] or (seen if len(seen) == 1 else [])
    return next(iter(on_card or receivers), None)


def _fill_by_elimination(hosts: list[Meeting], others: list[Meeting], seen: list[Meeting], reading: Reading) -> None:
    """Of two devices and one operand whose device is not known, it has the one that is left."""
    unknown = [m for m in seen if m.operand.device is None]
    if len(unknown) != 1 or len(reading.devices) < 2 or isinstance(unknown[0].site.node, ast.BinOp):
        return
    if others and not hosts and HOST in reading.devices:
        unknown[0].operand.device = HOST
        hosts.append(unknown[0])
    elif hosts and not others and reading.accelerator is not None:
        unknown[0].operand.device = reading.accelerator
        others.append(unknown[0])


def _name(found: Finding, stray: Meeting | None, other: Meeting | None, target: str | None, reading: Reading) -> None:
    if stray is None or target is None:
        return
    device = stray.operand.device or reading.accelerator or ""
    member = reading.modules.held_tensor(stray.site) if stray.operand.kind == "module" else ""
    found.stray = Stray(stray.site, member, device, stray.operand.kind, value=MISSING)
    found.other = other.operand if other is not None else None
    found.target = target
    found.chain = reading.chain(stray.site, device, stray.operand.kind)
    found.cause = reading.cause(stray.site, stray.operand.kind, member) or _classified(found, reading)
    agreed = stray.read and (found.host_required or (other is not None and other.read))
    found.confidence = "likely" if agreed and found.mismatch.confidence == "exact" else "guess"
    found.evidence = reading.evidence(stray.site, other.site if other is not None else None)


def _classified(found: Finding, reading: Reading) -> str:
    try:
        return classify(Facts(found, reading.tracer, []))
    except (AttributeError, IndexError, TypeError):  # a rule that wants live objects
        return "unknown"
