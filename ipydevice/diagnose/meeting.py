"""What met in the failing call: every tensor that takes part, by the user's name for it.

A `Candidate` is a tensor (or the expression whose result it was) together with the
expression in one frame's text that reaches it: ``x``, ``loss_fn`` + ``.weight``,
``batch`` + ``['mask']``.  Objects are looked into by structure only.
"""

from __future__ import annotations

import ast
import inspect
import types
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

from ipydevice import placement
from ipydevice.diagnose import locate
from ipydevice.diagnose.evaluate import MISSING, Scope, is_exactly, is_of, value
from ipydevice.diagnose.finding import Site
from ipydevice.diagnose.frames import Frame
from ipydevice.diagnose.infer import FACTORIES, LIKES, SHOWN, VIEWS, call_name, device, moved_to
from ipydevice.diagnose.source import Source
from ipydevice.placement.kinds import is_a

INSIDE_LIMIT = 3000  # tensors looked at inside one object


@dataclass(slots=True)
class Candidate:
    """A tensor that took part, by the text that reaches it in one frame."""

    frame: Frame
    node: ast.expr
    role: str
    device: str | None
    member: str = ""  # path below the node: ".weight", "['mask']"
    value: Any = None
    known: bool = False  # value is the live object
    via: str = ""  # how its owner holds it: parameter, buffer, attribute, item, state
    owner: Any = None
    attribute: str = ""
    root: Any = None  # the live object that `node` denotes, when `member` is not empty
    result: bool = False  # the node is a call or operation whose result is kept nowhere
    within: ast.expr | None = None  # the intermediate result that it is an ingredient of
    elsewhere: Source | None = None  # the text of the node, where no live frame runs it

    @property
    def source(self) -> Source:
        found = self.elsewhere or self.frame.source
        assert found is not None  # candidates are made of frames of the user's only
        return found

    @property
    def site(self) -> Site:
        return Site(self.source, self.node, None if self.elsewhere is not None else self.frame.frame)

    @property
    def expression(self) -> str:
        return self.source.segment(self.node) + self.member


def candidates(frame: Frame, below: Frame | None) -> list[Candidate]:
    """All that met in the running node of a user's frame; `below` is the frame that it called."""
    source = frame.source
    if source is None or frame.node is None:
        return []
    node = locate.store_statement(source, frame.node)
    call = entered(node, frame, below) if below is not None else None
    given = passed_values(call, frame, below) if below is not None and call is not None else {}
    if call is not None and below is not None and below.is_user:
        node = call
    passed = {expr: live for expr, (_, live) in given.items()}
    found: list[Candidate] = []
    called = value(node.func, frame.scope) if isinstance(node, ast.Call) else MISSING
    for expr, role in locate.operands(node):
        if role == "receiver" and called is not MISSING and not is_exactly(called, types.MethodType):
            continue  # `self.teacher(x)` calls an object of its own: what else self holds took no part
        name, _ = given.get(expr, (role, None))
        found += _expand(frame, expr, role if role in ("callee", "receiver") else name, passed)
    return found


def _expand(frame: Frame, expr: ast.expr, role: str, passed: dict[ast.expr, Any]) -> list[Candidate]:
    match expr:
        case ast.Starred(value=inner) | ast.NamedExpr(value=inner):
            return _expand(frame, inner, role, passed)
        case ast.Tuple(elts=parts) | ast.List(elts=parts) | ast.Set(elts=parts) | ast.Dict(values=parts):
            return [found for part in parts for found in _expand(frame, part, role, passed)]
        case ast.IfExp(body=one, orelse=another):
            return _expand(frame, one, role, passed) + _expand(frame, another, role, passed)
        case ast.Lambda() | ast.Constant() | ast.JoinedStr() | ast.Slice():
            return []
        case ast.Call(func=ast.Name(id="float" | "int" | "bool" | "len" | "str" | "range" | "round")):
            return []  # numbers and words have no device
    live = value(expr, frame.scope)
    if live is not MISSING:
        return list(_inside(frame, expr, role, live))
    if isinstance(expr, ast.Attribute) and role == "callee":
        return []  # a method: its receiver is an operand of its own
    base = _shown(expr, frame.scope)
    if base is not expr:
        shown = _expand(frame, base, role, passed)
        if any(candidate.known for candidate in shown):
            return shown
    if expr in passed:
        found = list(_inside(frame, expr, role, passed[expr]))
        return _ingredients(frame, expr, role, found[0].device) or found if len(found) == 1 else found
    if isinstance(expr, (ast.ListComp, ast.GeneratorExp)):
        made = value(expr.generators[0].iter, frame.scope)
        if made is not MISSING and isinstance(expr.elt, ast.Name):
            return list(_inside(frame, expr.generators[0].iter, role, made))
    where = device(expr, frame.scope)
    return _ingredients(frame, expr, role, where) or [Candidate(frame, expr, role, where, result=True)]


def ingredients(frame: Frame, expr: ast.expr) -> list[Candidate]:
    """The named tensors that a computed value was made of; empty where a move or a factory stands between."""
    base = view_of(expr, frame.scope)
    if base is not expr and placement.is_tensor(value(base, frame.scope)):
        return _expand(frame, base, "", {})
    return _ingredients(frame, base, "", None)


def _ingredients(frame: Frame, expr: ast.expr, role: str, where: str | None) -> list[Candidate]:
    """The named tensors that an intermediate result was computed from: ``m`` of ``m * b1``, ``a`` of ``a.mul_(b)``.

    Only where all of them are on one device; the result is there too.
    """
    parts: list[ast.expr]
    match expr:
        case ast.BinOp(left=left, right=right):
            parts = [left, right]
        case ast.UnaryOp(operand=operand):
            parts = [operand]
        case ast.Compare(left=left, comparators=others):
            parts = [left, *others]
        case ast.Call(func=ast.Attribute(value=receiver)) if _is_tensor_expression(receiver, frame.scope):
            if moved_to(expr, frame.scope) is not None:
                return []
            parts = [receiver, *expr.args]
        case ast.Call(args=args) if call_name(expr, frame.scope) not in ("", "load", *FACTORIES, *LIKES):
            parts = args
        case _:
            return []
    found = [c for part in parts for c in _expand(frame, part, role, {}) if c.device is not None]
    numbers = [c for c in found if c.known and placement.is_tensor(c.value) and placement.shape_of(c.value) == ()]
    named = [c for c in found if c.known and placement.is_tensor(c.value) and c not in numbers] or numbers[:1]
    if not named or any(c.result for c in found) or {c.device for c in named} != {where or named[0].device}:
        return []
    return [replace(candidate, within=expr) for candidate in named]


def _is_tensor_expression(expr: ast.expr, scope: Scope) -> bool:
    live = value(view_of(expr, scope), scope)
    return placement.is_tensor(live) or (isinstance(expr, (ast.BinOp, ast.Call)) and device(expr, scope) is not None)


def _shown(expr: ast.expr, scope: Scope) -> ast.expr:
    """The tensor with a name whose values an expression shows: ``batch["mask"]`` of ``batch["mask"][:, 0]``."""
    base = view_of(expr, scope)
    for node in ast.walk(expr):
        if isinstance(node, ast.Subscript) and placement.is_tensor(value(node, scope)):
            return node if view_of(node, scope) is base else base
    return base


def view_of(expr: ast.expr, scope: Scope) -> ast.expr:
    """``self.pe`` of ``self.pe[:, :n].unsqueeze(0)``: whose storage or values the expression shows."""
    while True:
        match expr:
            case ast.Subscript(value=inner):
                expr = inner
            case ast.Call(func=ast.Attribute(value=inner, attr=name)) if name in VIEWS or name in ("values", "items"):
                if _is_of_an_object(inner, name, scope):
                    return expr
                expr = inner
            case ast.Call(func=ast.Name(id="list" | "tuple" | "iter" | "sorted" | "reversed"), args=[inner]):
                expr = inner
            case ast.Attribute(value=inner, attr=name) if name in SHOWN:
                if _is_of_an_object(inner, name, scope):
                    return expr
                expr = inner
            case ast.UnaryOp(op=ast.USub() | ast.Invert(), operand=inner):
                expr = inner
            case _:
                return expr


def _is_of_an_object(owner: ast.expr, name: str, scope: Scope) -> bool:
    """Whether `name` is a method or attribute of the user's: ``self.split(x)``, ``self.data``."""
    live = value(owner, scope)
    if live is MISSING or placement.is_tensor(live):
        return False
    return name not in ("values", "items") or placement.is_module(live)


def _inside(frame: Frame, expr: ast.expr, role: str, live: Any) -> Iterator[Candidate]:
    """The tensors that `expr` is or holds."""
    if placement.is_tensor(live):
        yield Candidate(frame, expr, role, placement.device_of(live), value=live, known=True)
        return
    if is_exactly(live, types.FunctionType) and role in ("callee", "receiver") and frame.source is not None:
        return  # its body is in a frame of its own, if it matters
    if is_of(live, types.ModuleType, type, types.BuiltinFunctionType):
        return
    if is_a(live, "generator"):
        yield Candidate(frame, expr, role, str(live.device), value=live, known=True)
        return
    subject = live.__self__ if is_exactly(live, types.MethodType) else live
    for inner in islice(placement.walk(subject, limit=INSIDE_LIMIT), INSIDE_LIMIT):
        if inner.attribute == "batch_sizes":
            continue  # of a PackedSequence: on the host by rule (torch/nn/utils/rnn.py)
        yield Candidate(
            frame,
            expr,
            role,
            placement.device_of(inner.value),
            member=inner.path,
            value=inner.value,
            known=True,
            via=inner.via or "",
            owner=inner.owner,
            attribute=inner.attribute,
            root=subject,
        )


def entered(node: ast.AST, frame: Frame, below: Frame) -> ast.Call | None:
    """The call in `node` that entered the frame below: the inner one of ``list(gen(x))``; None where none of it did."""
    calls = [part for part in ast.walk(node) if isinstance(part, ast.Call)]
    code = below.frame.f_code
    for call in calls:
        live = value(call.func, frame.scope)
        function = live.__func__ if is_exactly(live, types.MethodType) else live
        if is_exactly(function, types.FunctionType) and function.__code__ is code:
            return call
    if not calls:
        return None
    live = value(calls[0].func, frame.scope)
    if is_exactly(live, types.FunctionType, types.MethodType, types.BuiltinFunctionType):
        return None
    if is_of(live, type) and code.co_name not in ("__init__", "__new__", "__call__"):
        return None
    return calls[0]


def anywhere(frame: Frame, inside: list[tuple[str, Any]]) -> list[Candidate]:
    """What took part, found anywhere on the line: ``executor.submit(model, x).result()`` raises another's error."""
    found: list[Candidate] = []
    for expr in ast.walk(frame.node) if frame.node is not None else ():
        if isinstance(expr, (ast.Name, ast.Attribute, ast.Subscript)):
            live = value(expr, frame.scope)
            held = _inside(frame, expr, "value", live) if live is not MISSING else ()
            found += [c for c in held if any(placement.same(c.value, tensor) for _, tensor in inside)]
    return found


def passed_values(call: ast.Call, frame: Frame, below: Frame) -> dict[ast.expr, tuple[str, Any]]:
    """A call's arguments by parameter name, with their values from the frame that it entered.

    This tells the value of an argument that has no name: ``window=torch.hann_window(n)``.
    """
    code = below.frame.f_code
    names = code.co_varnames
    positional = list(names[: code.co_argcount])
    held = below.frame.f_locals
    bound = 1 if positional and positional[0] in ("self", "cls") else 0
    if is_of(value(call.func, frame.scope), type):  # __init__
        bound = 1
    rest = held.get(names[code.co_argcount + code.co_kwonlyargcount], ()) if code.co_flags & inspect.CO_VARARGS else ()
    extra_at = code.co_argcount + code.co_kwonlyargcount + (1 if code.co_flags & inspect.CO_VARARGS else 0)
    extra = held.get(names[extra_at], {}) if code.co_flags & inspect.CO_VARKEYWORDS else {}
    told: dict[ast.expr, tuple[str, Any]] = {}
    takes = positional[bound:]
    for position, arg in enumerate(call.args):
        if isinstance(arg, ast.Starred):
            break
        if position < len(takes):
            told[arg] = takes[position], held.get(takes[position], MISSING)
        elif type(rest) is tuple and position - len(takes) < len(rest):
            told[arg] = str(position), rest[position - len(takes)]
    for kw in call.keywords:
        if kw.arg is None:
            continue
        if kw.arg in held:
            told[kw.value] = kw.arg, held[kw.arg]
        elif type(extra) is dict and kw.arg in extra:
            told[kw.value] = kw.arg, extra[kw.arg]
    if bound and positional and not isinstance(call.func, ast.Attribute):
        told[call.func] = "callee", held.get(positional[0], MISSING)
    return {expr: item for expr, item in told.items() if item[1] is not MISSING}


def library_operands(frames: list[Frame]) -> list[tuple[str, Any]]:
    """The tensors of the innermost library frame's running expression: (its name there, tensor)."""
    if not frames or frames[-1].is_user:
        return []
    frame = frames[-1]
    found = list(_library_tensors(frame.node, frame.scope))
    if len({placement.device_of(tensor) for _, tensor in found}) > 1:
        return found
    names = [(name, live) for name, live in dict.items(frame.frame.f_locals) if name != "self"]
    for name, live in names:
        if placement.is_tensor(live):
            found.append((name, live))
        elif is_exactly(live, list, tuple):
            found += [(name, part) for part in live if placement.is_tensor(part)]
    return found


def _library_tensors(node: ast.AST | None, scope: Scope) -> Iterator[tuple[str, Any]]:
    for expr, role in locate.operands(node):
        live = value(expr, scope)
        name = expr.attr if isinstance(expr, ast.Attribute) else getattr(expr, "id", role)
        if placement.is_tensor(live):
            yield name, live
        elif is_exactly(live, list, tuple):
            yield from ((name, part) for part in live if placement.is_tensor(part))


def fill_by_elimination(found: list[Candidate], devices: tuple[str, ...]) -> list[Candidate]:
    """Give unknown results the one device of the message that nobody else is on."""
    seen = {candidate.device for candidate in found if candidate.device is not None}
    missing = [name for name in dict.fromkeys(devices) if name not in seen]
    unknown = [candidate for candidate in found if candidate.device is None]
    if len(missing) != 1 or len(unknown) != 1:
        return found
    return [replace(c, device=missing[0]) if c.device is None else c for c in found]
