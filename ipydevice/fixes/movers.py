"""Helpers that move what they are given, and what they leave behind: taught at their own place, for every caller."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

from ipydevice import placement
from ipydevice.diagnose.evaluate import MISSING, attribute, is_of, item
from ipydevice.diagnose.finding import Site
from ipydevice.diagnose.source import Source
from ipydevice.fixes import classes, literals, sound
from ipydevice.fixes.context import Context, Proposal
from ipydevice.fixes.names import last_name, parameters, root
from ipydevice.fixes.phrases import listed
from ipydevice.placement.kinds import class_dicts, class_name, is_a

_MOVES = ("to", "cuda", "xpu")


def helpers(ctx: Context) -> Iterator[Proposal]:
    """What a helper on the stray's way forgot: a result, a kind of object, a name in its list, a sibling."""
    for repair in (_thrown_away, _unknown_kind, _missing_name, _beside_sibling):
        yield from repair(ctx)


# -- results thrown away --------------------------------------------------------------------------


def _thrown_away(ctx: Context) -> Iterator[Proposal]:
    """``[t.to(d) for t in tensors]`` as a statement, in a function that returns ``tensors``."""
    for step in ctx.chain:
        function = step.site.source.function(step.site.node)
        if step.how != "return" or function is None or isinstance(function, ast.Lambda):
            continue
        returned = {n.id for n in ast.walk(step.site.node) if isinstance(n, ast.Name)}
        for node in ast.walk(function):
            call = node.value if isinstance(node, ast.Expr) else None
            held = call.generators[0].iter if isinstance(call, ast.ListComp) else call
            moved = call.elt if isinstance(call, ast.ListComp) else call
            if call is not None and held is not None and _is_move(moved) and root(held) in returned:
                kept = literals.kept(ctx, Site(step.site.source, node), node)
                if kept is not None:
                    yield kept
                    return


def _is_move(node: ast.AST | None) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _MOVES


# -- kinds of objects that a helper does not know ---------------------------------------------------


def _unknown_kind(ctx: Context) -> Iterator[Proposal]:
    """A recursive helper that hands an object back as it is, or takes one apart that moves itself."""
    for source, function in _functions_on_the_way(ctx):
        name = next((p for p in parameters(function) if p not in ("self", "cls")), None)
        again, moved = _recursion(function, name), _returned_move(function, name)
        if name is None or again is None or moved is None:
            continue
        frame = sound.frame_at(ctx, source, function.body[0])
        here = ctx.work.value(Site(source, function.body[0], frame), name) if frame is not None else MISSING
        for live in (here, *_holders(ctx)):
            if live is MISSING or placement.is_tensor(live) or not placement.devices_of(live):
                continue
            if _moves_itself(live):
                proposal = _let_it_move_itself(ctx, source, function, name, moved, live)
            elif live is not here and _is_handed_back(ctx, function, name):
                proposal = _another_branch(ctx, source, function, name, again, live)
            else:
                continue
            if proposal is not None:
                yield proposal
                return


def _functions_on_the_way(ctx: Context) -> Iterator[tuple[Source, ast.FunctionDef]]:
    seen: set[int] = set()
    for site in (ctx.finding.failed, *(step.site for step in ctx.chain)):
        function = site.source.function(site.node)
        if isinstance(function, ast.FunctionDef) and id(function) not in seen:
            seen.add(id(function))
            yield site.source, function
        for call in ast.walk(site.node):  # called on the way
            if isinstance(call, ast.Call) and isinstance(call.func, ast.Name):
                for source, called in _defined(ctx, call.func.id):
                    if id(called) not in seen:
                        seen.add(id(called))
                        yield source, called


def _defined(ctx: Context, name: str) -> Iterator[tuple[Source, ast.FunctionDef]]:
    for source in classes.sources(ctx):
        for node in source.tree.body:
            if isinstance(node, ast.FunctionDef) and node.name == name:
                yield source, node
                return


def _recursion(function: ast.FunctionDef, name: str | None) -> ast.Call | None:
    """A call of the function by itself, on a part of what it was given."""
    for node in ast.walk(function):
        if isinstance(node, ast.Call) and last_name(node.func) == function.name and node.args and name is not None:
            return node
    return None


def _returned_move(function: ast.FunctionDef, name: str | None) -> ast.Call | None:
    """The ``x.to(device)`` of ``return x.to(device)``."""
    for node in ast.walk(function):
        if isinstance(node, ast.Return) and isinstance(node.value, ast.Call) and _is_move(node.value):
            assert isinstance(node.value.func, ast.Attribute)
            if isinstance(node.value.func.value, ast.Name) and node.value.func.value.id == name:
                return node.value
    return None


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


def _moves_itself(live: Any) -> bool:
    """Has its class a method ``to``?"""
    return any(callable(space.get("to")) for space in class_dicts(type(live)))


def _is_handed_back(ctx: Context, function: ast.FunctionDef, name: str) -> bool:
    """Is the way of the stray through a ``return x`` of this function, which gives back what it was given?"""
    inside = set(map(id, ast.walk(function)))
    for step in ctx.chain:
        if step.how == "return" and id(step.site.node) in inside:
            return isinstance(step.value, ast.Name) and step.value.id == name
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
    title = f"let {function.name} leave it to what has a .to() of its own, as a {class_name(type(live))} has"
    return Proposal(title, [draft])


def home_is_torch(function: Any) -> bool:
    """Was it made in torch?"""
    return str(getattr(function, "__module__", "")).partition(".")[0] == "torch"


def _asks_kind(test: ast.expr, name: str) -> bool:
    """``isinstance(x, torch.Tensor)``, ``torch.is_tensor(x)``."""
    asks = isinstance(test, ast.Call) and last_name(test.func) in ("isinstance", "is_tensor") and bool(test.args)
    return asks and isinstance(test.args[0], ast.Name) and test.args[0].id == name  # type: ignore[attr-defined]


def _another_branch(
    ctx: Context, source: Source, function: ast.FunctionDef, name: str, again: ast.Call, live: Any
) -> Proposal | None:
    """Another ``if`` above the ``return x`` at the end, for what the stray is in."""
    last = function.body[-1]
    if not (isinstance(last, ast.Return) and isinstance(last.value, ast.Name) and last.value.id == name):
        return None
    rest = [*map(source.segment, again.args[1:]), *(source.segment(k) for k in again.keywords)]

    def moved(part: str) -> str:
        return f"{source.segment(again.func)}({', '.join([part, *rest])})"

    taken = {n.id for n in ast.walk(function) if isinstance(n, ast.Name)}
    v, k, f = (next(n for n in (one, f"{one}_") if n not in taken - _bound_in_parts(function)) for one in "vkf")
    if fields := _fields(live):
        module = _module_name(ctx, Site(source, last), "dataclasses")
        prefix, lead = (f"{module}.", "") if module else ("dataclasses.", "import dataclasses\n\n")
        chosen = f" if {f}.init" if any(not field.init for field in fields) else ""
        parts = f"**{{{f}.name: {moved(f'getattr({name}, {f}.name)')} for {f} in {prefix}fields({name}){chosen}}}"
        test, value, what = f"{prefix}is_dataclass({name})", f"{prefix}replace({name}, {parts})", "dataclasses"
    elif is_of(live, tuple) and any("_fields" in space for space in class_dicts(type(live))):
        lead, what = "", "named tuples"
        test = f"isinstance({name}, tuple) and hasattr({name}, {classes.quote(source, '_fields')})"
        value = f"type({name})(*({moved(v)} for {v} in {name}))"
    elif type(live) in (list, tuple):
        lead, what = "", "lists and tuples"
        test, value = f"isinstance({name}, (list, tuple))", f"type({name})({moved(v)} for {v} in {name})"
    elif is_of(live, dict):
        lead, what = "", "dicts"
        test, value = f"isinstance({name}, dict)", f"{{{k}: {moved(v)} for {k}, {v} in {name}.items()}}"
    else:
        return None
    draft = ctx.draft(source)
    if lead:
        top = next((up for up in source.ancestors(last) if source.parent(up) is source.tree), function)
        draft.before(top, lead.strip()) if isinstance(top, ast.stmt) else None
    draft.before(last, f"if {test}:\n    return {value}")
    return Proposal(f"let {function.name} go into {what} as well", [draft])


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


# -- lists of names ---------------------------------------------------------------------------------


def _missing_name(ctx: Context) -> Iterator[Proposal]:
    """``for key in ("x", "y"): ... .to(device)`` gets the name that it lacks."""
    found = _part(ctx)
    if found is None:
        return
    holder, name = found
    for source in classes.sources(ctx):
        for node in ast.walk(source.tree):
            for loop in _loops(node):
                if not any(_is_move(n) for n in ast.walk(node)):
                    continue
                names = _names_in(ctx, source, node, loop, holder)
                texts = _texts(names)
                if names is None or not texts or name in texts or not _moves_these(ctx, holder, texts):
                    continue
                draft = ctx.draft(source)
                draft.replace(names, _longer(draft.segment(names), classes.quote(source, name)))
                yield Proposal(f"move {name} with the others: add it to their names", [draft])
                return


def _loops(node: ast.AST) -> list[tuple[ast.AST, ast.expr]]:
    """(target, iterable) of the loops that `node` is."""
    if isinstance(node, ast.For):
        return [(node.target, node.iter)]
    return [(g.target, g.iter) for g in getattr(node, "generators", [])]


def _part(ctx: Context) -> tuple[Any, str] | None:
    """(the object that holds the stray, its name there: an attribute or a key)."""
    stray = ctx.stray
    if stray is None:
        return None
    for text in (stray.expression, stray.path, *_written(ctx)):
        try:
            node = ast.parse(text or "", mode="eval").body
        except SyntaxError:
            continue
        name = _last_part(node)
        if name is None:
            continue
        for live in _live_everywhere(ctx, node.value):  # type: ignore[attr-defined]
            held = item(live, name) if isinstance(node, ast.Subscript) else attribute(live, name)
            if held is not MISSING and ctx.strays_like(held):
                return live, name
    if stray.owner is not None and stray.attribute.isidentifier() and not placement.is_module(stray.owner):
        return stray.owner, stray.attribute
    return None


def _written(ctx: Context) -> Iterator[str]:
    """How the stray is written on its way: ``batch["mask"]``."""
    for step in ctx.chain:
        if step.how in ("argument", "assignment") and step.value is not None:
            yield ast.unparse(step.value)


def _last_part(node: ast.AST) -> str | None:
    if isinstance(node, ast.Attribute):
        return node.attr
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant) and type(node.slice.value) is str:
        return node.slice.value
    return None


def _live_everywhere(ctx: Context, node: ast.expr) -> Iterator[Any]:
    """What an expression denotes in each of the live frames."""
    stray = ctx.stray
    sites = [stray.site] if stray is not None else []
    for site in (*sites, ctx.finding.failed, *(step.site for step in ctx.chain)):
        names = [n.id for n in ast.walk(node) if isinstance(n, ast.Name)]
        if all(ctx.work.value(site, name) is not MISSING for name in names):
            live = sound.value_at(ctx, site, node)
            if live is not MISSING and live is not None:
                yield live


def _names_in(
    ctx: Context, source: Source, node: ast.AST, loop: tuple[ast.AST, ast.expr], holder: Any
) -> ast.expr | None:
    """The literal list of names that a loop goes through, written there or bound to a name."""
    target, given = loop
    if not isinstance(target, ast.Name):
        return None
    used = {n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}
    if target.id not in used:
        return None
    if isinstance(given, ast.Name):
        area = [*ctx.work.functions(source, node), source.tree]
        values = [s.value for a in area for s in ast.walk(a) if _binds(s, given.id)]
    elif isinstance(given, ast.Attribute) and isinstance(given.value, ast.Name):
        node_of = source.class_of(node)
        values = [] if node_of is None else [s.value for s in ast.walk(node_of) if _binds(s, given.attr)]
    else:
        values = [given]
    return values[0] if len({id(v) for v in values}) == 1 else None


def _binds(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.Assign) and len(node.targets) == 1 and last_name(node.targets[0]) == name


def _texts(node: ast.expr | None) -> list[str]:
    if not isinstance(node, (ast.List, ast.Tuple, ast.Set)):
        return []
    found = [e.value for e in node.elts if isinstance(e, ast.Constant) and type(e.value) is str]
    return found if len(found) == len(node.elts) else []


def _moves_these(ctx: Context, holder: Any, names: list[str]) -> bool:
    """Are the named parts of the object, one at least, on the device on which the stray should be?"""
    parts = [item(holder, n) if is_of(holder, dict) else attribute(holder, n) for n in names]
    return any(placement.is_tensor(p) and placement.device_of(p) == ctx.target for p in parts)


def _longer(text: str, new: str) -> str:
    """The text of a list of names with another one."""
    closing = text[-1] if text[-1:] in ")]}" and text[:1] in "([{" else ""
    inner = text[: len(text) - len(closing)].rstrip()
    return f"{inner.removesuffix(',')}, {new}{closing}"


# -- siblings -----------------------------------------------------------------------------------------


def _beside_sibling(ctx: Context) -> Iterator[Proposal]:
    """``batch["image"] = batch["image"].to(device)`` stands there: so is ``batch["mask"]`` moved, below it."""
    found = _part(ctx)
    if found is None:
        return
    holder, name = found
    names = [name, *_met_beside(ctx, holder, name)]
    for source in classes.sources(ctx):
        for node in ast.walk(source.tree):
            moved = _moved_part(node)
            if moved is None or not isinstance(node, ast.Assign):
                continue
            target, call = moved
            part = _last_part(target)
            if part is None or part in names or not _moves_these(ctx, holder, [part]):
                continue
            if isinstance(target, ast.Subscript) != is_of(holder, dict):
                continue
            old = source.segment(target)
            base = source.segment(target.value)
            tail = source.segment(call)[len(old) :]
            if any(_is_stored(source, node, base, one) for one in names):
                continue
            if isinstance(target, ast.Attribute) and base == ctx.work.self_name(Site(source, node)) == "self":
                if source.class_of(node) is None or not _is_class_of(source.class_of(node), holder):
                    continue
            draft = ctx.draft(source)
            for one in reversed(names):
                said = f"{base}[{classes.quote(source, one)}]" if isinstance(target, ast.Subscript) else f"{base}.{one}"
                draft.after(node, f"{said} = {said}{tail}")
            yield Proposal(f"move {listed(names)} beside {part}", [draft])
            return


def _moved_part(node: ast.AST) -> tuple[ast.Attribute | ast.Subscript, ast.Call] | None:
    """``b["x"] = b["x"].to(device)``: the part, and the move."""
    if not (isinstance(node, ast.Assign) and len(node.targets) == 1 and _is_move(node.value)):
        return None
    target, call = node.targets[0], node.value
    assert isinstance(call, ast.Call)
    assert isinstance(call.func, ast.Attribute)
    if isinstance(target, (ast.Attribute, ast.Subscript)) and ast.unparse(target) == ast.unparse(call.func.value):
        return target, call
    return None


def _is_stored(source: Source, node: ast.stmt, base: str, name: str) -> bool:
    """Is the part bound in the same function already?"""
    area = source.function(node) or source.tree
    for other in ast.walk(area):
        if isinstance(other, (ast.Attribute, ast.Subscript)) and isinstance(other.ctx, ast.Store):
            if source.segment(other.value) == base and _last_part(other) == name:
                return True
    return False


def _is_class_of(node: ast.ClassDef | None, holder: Any) -> bool:
    return node is not None and any(node.name == class_name(cls) for cls in type(holder).__mro__)


def _met_beside(ctx: Context, holder: Any, name: str) -> list[str]:
    """Other parts of the same object on the wrong device, used in the statements on the stray's way."""
    found: list[str] = []
    for site in (ctx.finding.failed, *(step.site for step in ctx.chain)):
        for node in ast.walk(site.source.function(site.node) or site.node):
            part = _last_part(node)
            if part is None or part == name or part in found or not isinstance(node, (ast.Attribute, ast.Subscript)):
                continue
            if isinstance(node, ast.Subscript) == is_of(holder, dict) and isinstance(node.ctx, ast.Load):
                live = item(holder, part) if is_of(holder, dict) else attribute(holder, part)
                if ctx.strays_like(live) and any(one is holder for one in _live_everywhere(ctx, node.value)):
                    found.append(part)
    return found

