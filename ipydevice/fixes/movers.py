"""Helpers that move what they are given, and what they leave behind: taught at their own place, for every caller."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ipydevice import placement
from ipydevice.diagnose.evaluate import MISSING, is_of
from ipydevice.diagnose.finding import Site
from ipydevice.diagnose.source import Source
from ipydevice.fixes import classes, sound
from ipydevice.fixes.context import Context, Proposal
from ipydevice.fixes.names import last_name, parameters
from ipydevice.fixes.phrases import listed
from ipydevice.language import Sentence, say
from ipydevice.placement.kinds import attributes, class_dicts, class_name, is_a

_MOVES = ("to", "cuda", "xpu")


def helpers(ctx: Context) -> Iterator[Proposal]:
    """What a helper on the stray's way forgot: a result, a kind of object."""
    for repair in (_thrown_away, _unknown_kind):
        yield from repair(ctx)


# -- results thrown away --------------------------------------------------------------------------


def _thrown_away(ctx: Context) -> Iterator[Proposal]:
    """``[t.to(d) for t in tensors]`` as a statement, in a function that returns ``tensors``."""
    for step in (*ctx.chain, *ctx.finding.owner_chain):
        function = step.site.source.function(step.site.node)
        if step.how != "return" or function is None or isinstance(function, ast.Lambda):
            continue
        returned = {n.id for n in ast.walk(step.site.node) if isinstance(n, ast.Name)}
        draft = ctx.draft(step.site.source)
        lost = [node for node in ast.walk(function) if isinstance(node, ast.Expr) and _moved_in_vain(node) in returned]
        for node in lost:
            draft.replace_statement(node, f"{_moved_in_vain(node)} = {draft.segment(node.value)}")
        if lost:
            calls = listed([step.site.source.segment(node.value) for node in lost])
            title = (
                say("keep the result of {call}", call=calls)
                if len(lost) == 1
                else say("keep the results of {calls}", calls=calls)
            )
            yield Proposal(title, [draft])
            return


def _moved_in_vain(node: ast.Expr) -> str | None:
    """``x`` of the statements ``x.to(device)`` and ``[t.to(device) for t in x]``."""
    value = node.value
    if isinstance(value, ast.ListComp) and is_move(value.elt) and isinstance(value.generators[0].iter, ast.Name):
        return value.generators[0].iter.id
    moved = value.func.value if is_move(value) else None  # type: ignore[attr-defined]
    return moved.id if isinstance(moved, ast.Name) else None


def is_move(node: ast.AST | None) -> bool:
    """``x.to(...)``, ``x.cuda()``"""
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _MOVES


# -- kinds of objects that a helper does not know ---------------------------------------------------


def _unknown_kind(ctx: Context) -> Iterator[Proposal]:
    """A recursive helper that hands an object back as it is, or takes one apart that moves itself."""
    for source, function in functions_on_the_way(ctx):
        name = next((p for p in parameters(function) if p not in ("self", "cls")), None)
        again, moved = _recursion(function, name), _returned_move(function, name)
        if name is None or again is None or moved is None:
            continue
        frame = sound.frame_at(ctx, source, function.body[0])
        here = ctx.work.value(Site(source, function.body[0], frame), name) if frame is not None else MISSING
        unknown: list[Any] = []
        for live in (here, *_holders(ctx)):
            if live is MISSING or placement.is_tensor(live) or placement.is_module(live):
                continue
            held = devices_within(live)
            if not held or (live is not here and ctx.stray is not None and ctx.stray.device not in held):
                continue
            if moves_itself(live):
                proposal = _let_it_move_itself(ctx, source, function, name, moved, live)
                if proposal is not None:
                    yield proposal
                    return
            elif live is not here and _is_handed_back(ctx, function, name):
                unknown += [one for one in _all_in(live) if not _takes_apart(ctx, source, function, name, one)]
        proposal = _more_branches(ctx, source, function, name, again, unknown) if unknown else None
        if proposal is not None:
            yield proposal
            return


def _all_in(live: Any) -> list[Any]:
    """The object and what it holds that holds tensors in turn, each to be taken apart."""
    found: list[Any] = []
    waiting = [live]
    while waiting and len(found) < _MOST_PARTS:
        one = waiting.pop(0)
        if placement.is_tensor(one) or placement.is_module(one) or moves_itself(one) or not devices_within(one):
            continue
        found.append(one)
        fields = [attributes(one).get(field.name) for field in _fields(one)]
        waiting += dict.values(one) if is_of(one, dict) else one if is_of(one, list, tuple) else fields
    return found


_MOST_PARTS = 200


def _takes_apart(ctx: Context, source: Source, function: ast.FunctionDef, name: str, live: Any) -> bool:
    """Does one of the function's questions hold for the object, as ``isinstance(x, (list, tuple))`` does for a list?"""
    for node in ast.walk(function):
        match node:
            case ast.If(test=test) | ast.IfExp(test=test) if _holds(ctx, Site(source, test), test, name, live):
                return True
            case ast.MatchClass(cls=kinds) if any(
                _is_kind(live, one) for one in _kinds(ctx, Site(source, kinds), kinds)
            ):
                return True
            case ast.MatchSequence() if is_of(live, list, tuple):
                return True
            case ast.MatchMapping() if is_of(live, dict):
                return True
    return False


def _holds(ctx: Context, site: Site, test: ast.expr, name: str, live: Any) -> bool:
    match test:
        case ast.BoolOp(op=ast.Or(), values=values):
            return any(_holds(ctx, site, one, name, live) for one in values)
        case ast.BoolOp(op=ast.And(), values=values):
            return all(_holds(ctx, site, one, name, live) for one in values)
        case ast.Call(func=ast.Name(id="isinstance"), args=[ast.Name(id=asked), kinds]) if asked == name:
            return any(_is_kind(live, kind) for kind in _kinds(ctx, site, kinds))
        case ast.Call(func=ast.Name(id="hasattr"), args=[ast.Name(id=asked), ast.Constant(value=str(wanted))]):
            return asked == name and sound.offers(live, wanted)
        case ast.Call(func=func, args=[ast.Name(id=asked)]) if last_name(func) == "is_dataclass":
            return asked == name and bool(_fields(live))
        case ast.Compare(
            left=ast.Call(func=ast.Name(id="type"), args=[ast.Name(id=asked)]),
            ops=[ast.Is() | ast.Eq() | ast.In()],
            comparators=[kinds],
        ) if asked == name:
            return any(type(live) is kind for kind in _kinds(ctx, site, kinds))
    return False


def _kinds(ctx: Context, site: Site, node: ast.expr) -> list[Any]:
    """The classes that an expression names: ``list``, ``(dict, Mapping)``."""
    parts = node.elts if isinstance(node, (ast.Tuple, ast.List, ast.Set)) else [node]
    found = []
    for part in parts:
        live = ctx.value(site, part)
        known = builtins.__dict__.get(part.id) if live is MISSING and isinstance(part, ast.Name) else live
        found += list(known) if type(known) is tuple else [known]
    return [one for one in found if is_of(one, type)]


def _is_kind(live: Any, kind: type) -> bool:
    """Is it of that class; of the abstract ones of collections.abc as well, of which a dict is by register alone?"""
    if is_of(live, kind):
        return True
    return kind.__module__ == "collections.abc" and is_of(live, dict, list, tuple) and isinstance(live, kind)


def functions_on_the_way(ctx: Context) -> Iterator[tuple[Source, ast.FunctionDef]]:
    seen: set[int] = set()
    for site in (ctx.finding.failed, *(step.site for step in (*ctx.chain, *ctx.finding.owner_chain))):
        function = site.source.function(site.node)
        if isinstance(function, ast.FunctionDef) and id(function) not in seen:
            seen.add(id(function))
            yield site.source, function
        statement = site.source.statement(site.node)
        simple = statement if statement is not None and not hasattr(statement, "body") else site.node
        for call in ast.walk(simple):  # called on the way
            for source, called in (
                classes.functions_named(ctx, last_name(call.func)) if isinstance(call, ast.Call) else ()
            ):
                if isinstance(called, ast.FunctionDef) and id(called) not in seen:
                    seen.add(id(called))
                    yield source, called


def _recursion(function: ast.FunctionDef, name: str | None) -> ast.Call | None:
    """A call of the function by itself, on a part of what it was given."""
    for node in ast.walk(function):
        if isinstance(node, ast.Call) and last_name(node.func) == function.name and node.args and name is not None:
            return node
    return None


def _returned_move(function: ast.FunctionDef, name: str | None) -> ast.Call | None:
    """The ``x.to(device)`` of ``return x.to(device)``, also of ``return x.to(device) if is_tensor(x) else x``."""
    for node in ast.walk(function):
        for value in _choices(node.value) if isinstance(node, ast.Return) and node.value is not None else ():
            if isinstance(value, ast.Call) and is_move(value):
                assert isinstance(value.func, ast.Attribute)
                if isinstance(value.func.value, ast.Name) and value.func.value.id == name:
                    return value
    return None


def _choices(value: ast.expr) -> list[ast.expr]:
    """Both sides of ``a if b else c``, or the expression itself."""
    return [*_choices(value.body), *_choices(value.orelse)] if isinstance(value, ast.IfExp) else [value]


def _gives_back(statement: ast.AST, name: str) -> bool:
    """``return x``, ``return x.to(device) if is_tensor(x) else x``"""
    parts = _choices(statement.value) if isinstance(statement, ast.Return) and statement.value is not None else []
    return any(isinstance(part, ast.Name) and part.id == name for part in parts)


def _holders(ctx: Context) -> Iterator[Any]:
    """The live objects that hold the stray, as they are written: the ``train['cond']`` of ``train['cond'].t``."""
    stray = ctx.stray
    if stray is None:
        return
    if stray.owner is not None:
        yield stray.owner
    for text in (stray.expression, stray.path):
        try:
            node: ast.AST = ast.parse(text or "", mode="eval").body
        except SyntaxError:
            continue
        while isinstance(node, (ast.Attribute, ast.Subscript)):
            node = node.value
            live = ctx.value(Site(stray.site.source, stray.site.node, stray.site.frame), node)
            if live is not MISSING and live is not None:
                yield live


def devices_within(live: Any) -> tuple[str, ...]:
    """Where the tensors of an object are, also of one of the user's own class."""
    parts = [live, *attributes(live).values()]
    return tuple(dict.fromkeys(device for part in parts for device in placement.devices_of(part)))


def moves_itself(live: Any) -> bool:
    """Has its class a method ``to``?"""
    return any(callable(space.get("to")) for space in class_dicts(type(live)))


def _is_handed_back(ctx: Context, function: ast.FunctionDef, name: str) -> bool:
    """Is the way of the stray through a ``return x`` of this function, which gives back what it was given?"""
    inside = set(map(id, ast.walk(function)))
    for step in (*ctx.chain, *ctx.finding.owner_chain):
        if step.how == "return" and id(step.site.node) in inside:
            parts = _choices(step.value) if step.value is not None else []
            return any(isinstance(part, ast.Name) and part.id == name for part in parts)
    return False


def _let_it_move_itself(
    ctx: Context, source: Source, function: ast.FunctionDef, name: str, moved: ast.Call, live: Any
) -> Proposal | None:
    """``isinstance(x, torch.Tensor)`` becomes ``hasattr(x, "to")``, where it is asked first."""
    draft = ctx.draft(source)
    body = function.body[1:] if ast.get_docstring(function) else function.body
    first = body[0] if body else None
    asked = f"hasattr({name}, {classes.quote(source, 'to')})"
    own = next((space["to"] for space in class_dicts(type(live)) if "to" in space), None)
    plain = not moved.keywords or is_a(live, "packed") or home_is_torch(own)
    if isinstance(first, ast.If) and any(node is moved for node in ast.walk(first)) and _asks_kind(first.test, name):
        if not plain:
            return None
        draft.replace(first.test, asked)
    else:
        said = ", ".join([*map(source.segment, moved.args), *(source.segment(k) for k in moved.keywords if plain)])
        draft.top_of(function.body, f"if {asked}:\n    return {name}.to({said})")
    title = say(
        "let {function} leave it to what has a .to() of its own, as a {kind} has",
        function=function.name,
        kind=class_name(type(live)),
    )
    return Proposal(title, [draft])


def home_is_torch(function: Any) -> bool:
    """Was it made in torch?"""
    return str(getattr(function, "__module__", "")).partition(".")[0] == "torch"


def _asks_kind(test: ast.expr, name: str) -> bool:
    """``isinstance(x, torch.Tensor)``, ``torch.is_tensor(x)``."""
    asks = isinstance(test, ast.Call) and last_name(test.func) in ("isinstance", "is_tensor") and bool(test.args)
    return asks and isinstance(test.args[0], ast.Name) and test.args[0].id == name  # type: ignore[attr-defined]


def _more_branches(
    ctx: Context, source: Source, function: ast.FunctionDef, name: str, again: ast.Call, unknown: list[Any]
) -> Proposal | None:
    """More questions above the ``return x`` at the end, for all kinds of objects that the stray's batch is made of."""
    last = _last_return(function, name)
    if last is None:
        return None
    found = [_branch(ctx, source, function, name, again, live) for live in unknown]
    branches = {branch.what: branch for branch in found if branch is not None}
    if not branches:
        return None
    draft = ctx.draft(source)
    if any(branch.imports for branch in branches.values()):
        top = next((up for up in source.ancestors(last) if source.parent(up) is source.tree), function)
        draft.before(top, "import dataclasses") if isinstance(top, ast.stmt) else None
    for branch in sorted(branches.values(), key=lambda one: _FIRST_ASKED.index(one.what)):
        draft.before(last, f"if {branch.test}:\n    return {branch.value}")
    what = listed([say(one) for one in branches])
    return Proposal(say("let {function} go into {what} as well", function=function.name, what=what), [draft])


def _last_return(function: ast.FunctionDef, name: str) -> ast.Return | None:
    """The statement, the last in the text, that gives back what no question was asked for."""
    found = [node for node in ast.walk(function) if isinstance(node, ast.Return) and _gives_back(node, name)]
    return max(found, key=lambda node: node.lineno, default=None)


@dataclass(frozen=True, slots=True)
class _Branch:
    what: Sentence
    test: str
    value: str
    imports: bool = False


# A named tuple is a tuple, so it is asked for first.
_FIRST_ASKED = ("dataclasses", "named tuples", "lists and tuples", "lists", "tuples", "dicts")


def _branch(
    ctx: Context, source: Source, function: ast.FunctionDef, name: str, again: ast.Call, live: Any
) -> _Branch | None:
    rest = [*map(source.segment, again.args[1:]), *(source.segment(k) for k in again.keywords)]
    last = function.body[-1]

    def moved(part: str) -> str:
        return f"{source.segment(again.func)}({', '.join([part, *rest])})"

    taken = {n.id for n in ast.walk(function) if isinstance(n, ast.Name)}
    v, k, f = (next(n for n in (one, f"{one}_") if n not in taken - _bound_in_parts(function)) for one in "vkf")
    if fields := _fields(live):
        module = _module_name(ctx, Site(source, last), "dataclasses")
        prefix = f"{module or 'dataclasses'}."
        chosen = f" if {f}.init" if any(not field.init for field in fields) else ""
        parts = f"**{{{f}.name: {moved(f'getattr({name}, {f}.name)')} for {f} in {prefix}fields({name}){chosen}}}"
        test = f"{prefix}is_dataclass({name})"
        return _Branch(Sentence("dataclasses"), test, f"{prefix}replace({name}, {parts})", imports=module is None)
    if is_of(live, tuple) and any("_fields" in space for space in class_dicts(type(live))):
        test = f"isinstance({name}, tuple) and hasattr({name}, {classes.quote(source, '_fields')})"
        return _Branch(Sentence("named tuples"), test, f"type({name})(*({moved(v)} for {v} in {name}))")
    if type(live) in (list, tuple):
        kind = type(live).__name__
        others: tuple[Any, ...] = ([], ())
        if any(_takes_apart(ctx, source, function, name, other) for other in others):  # it knows one of the two
            return _Branch(
                Sentence("lists") if type(live) is list else Sentence("tuples"),
                f"isinstance({name}, {kind})",
                f"{kind}({moved(v)} for {v} in {name})",
            )
        made = f"type({name})({moved(v)} for {v} in {name})"
        return _Branch(Sentence("lists and tuples"), f"isinstance({name}, (list, tuple))", made)
    if is_of(live, dict):
        value = f"{{{k}: {moved(v)} for {k}, {v} in {name}.items()}}"
        return _Branch(Sentence("dicts"), f"isinstance({name}, dict)", value)
    return None


def _bound_in_parts(function: ast.FunctionDef) -> set[str]:
    """The names of its comprehensions, which a new one may use again."""
    loops = [g for node in ast.walk(function) for g in getattr(node, "generators", [])]
    return {n.id for loop in loops for n in ast.walk(loop.target) if isinstance(n, ast.Name)}


def _fields(live: Any) -> list[Any]:
    """The fields of a dataclass's instance."""
    for space in class_dicts(type(live)):
        found = space.get("__dataclass_fields__")
        if type(found) is dict:
            return list(found.values())
    return []


def _module_name(ctx: Context, site: Site, module: str) -> str | None:
    """What the code at `site` calls a module."""
    import sys

    wanted = sys.modules.get(module)
    for name, live in list(ctx.work.globals_of(site).items()):
        if live is wanted and wanted is not None and not name.startswith("_") and ctx.work.available(site, name):
            return name
    return None
