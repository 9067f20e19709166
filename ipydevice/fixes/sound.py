"""Can the code of a fix work on the objects that are there?  A fix that cannot is never offered.

A value that is reached without running code must have what is asked of it (``.to``, ``.device``), and where something
is assigned, its holder must take it.  What is not reached stays unknown, and passes.
"""

from __future__ import annotations

import ast
import builtins
from types import FrameType
from typing import TYPE_CHECKING, Any

from ipydevice import placement
from ipydevice.diagnose import bindings
from ipydevice.diagnose.evaluate import MISSING, Scope, is_of, value
from ipydevice.diagnose.finding import Site
from ipydevice.diagnose.infer import moved_to
from ipydevice.diagnose.source import Source
from ipydevice.fixes.names import bound, parameters, read
from ipydevice.placement.kinds import attributes, class_dicts

if TYPE_CHECKING:
    from ipydevice.fixes.context import Context
    from ipydevice.fixes.edits import Draft

_HOLE = "_ipydevice_hole_"
_ASKED = ("to", "cpu", "cuda", "detach", "device")


def is_sound(ctx: Context, draft: Draft) -> bool:
    """Does all that the draft says at a place have what it asks for there, as far as this can be known?"""
    from ipydevice.fixes import results  # it asks the context, which asks this module

    for node, code, below in draft.said:
        if _leaves_alias(draft.source, node, code):
            return False
        site = Site(draft.source, node, frame_at(ctx, draft.source, node))
        if "{}" in code and isinstance(node, ast.expr):
            if _goes_nowhere(node, code) or _is_there_already(ctx, site, node, code):
                return False
            if code.startswith("{}.") and not results.has(ctx, site, node, code[3:].partition("(")[0]):
                return False
            code = code.replace("{}", _HOLE, 1)
        if not _works(ctx, site, code) or _unbound(ctx, site, code, node if below else None):
            return False
    return True


def _is_there_already(ctx: Context, site: Site, node: ast.expr, code: str) -> bool:
    """``Net().cuda().to("cuda:0")`` moves nothing, and the error comes back."""
    if not (code.startswith(("{}.to(", "{}.cpu(")) and isinstance(node, ast.Call) and ctx.target is not None):
        return False
    return moved_to(node, ctx.scope(site)) == ctx.target


def _unbound(ctx: Context, site: Site, code: str, above: ast.AST | None) -> bool:
    """Does the code use a name that nothing has bound by then: of a loop that begins there, of a later line?"""
    try:
        tree = ast.parse(code.lstrip())
    except SyntaxError:
        return False
    names = read(tree.body) - bound(tree.body) - {_HOLE}
    return any(_never_bound(ctx, site, name) for name in names - bound([above] if above is not None else []))


def _never_bound(ctx: Context, site: Site, name: str) -> bool:
    """Is nothing that binds the name above the place? Only where that is sure."""
    source, node = site.source, site.node
    if name in builtins.__dict__ or ctx.work.available(site, name):
        return False
    functions = list(ctx.work.functions(source, node))
    for function in functions:
        stores = _stores(function, name)
        if name in parameters(function) or stores:
            return name not in parameters(function) and not any(_stands_before(one, node) for one in stores)
    if functions or source.cell is None or name not in ctx.work.globals_of(site):
        return False  # the names of a text are not known
    here = ctx.work.position(source.cell)
    earlier = any(ctx.work.position(cell) < here for cell in ctx.work.binders(name))
    stores = _stores(source.tree, name)
    return bool(stores) and not earlier and not any(_stands_before(one, node) for one in stores)


def _stores(area: ast.AST, name: str) -> list[ast.Name]:
    return [n for n in ast.walk(area) if isinstance(n, ast.Name) and n.id == name and isinstance(n.ctx, ast.Store)]


def _stands_before(one: ast.AST, other: ast.AST) -> bool:
    return (one.lineno, one.col_offset) < (other.lineno, other.col_offset)  # type: ignore[attr-defined]


def _goes_nowhere(node: ast.expr, code: str) -> bool:
    """``p.detach().clone().to(p.device)``: it is there already."""
    below: ast.expr = node
    while isinstance(below, (ast.Call, ast.Attribute)):
        below = below.func if isinstance(below, ast.Call) else below.value
        if not isinstance(below, (ast.Call, ast.Attribute, ast.Name)):
            return False
        if code == f"{{}}.to({ast.unparse(below)}.device)":
            return True
    return False


def _leaves_alias(source: Source, node: ast.AST, code: str) -> bool:
    """Would a name of a loop or an argument be bound to a copy, which is then changed in place of what it stood for?

    ``for p, q in zip(ema.parameters(), net.parameters()): p.data.mul_(m)``: after ``p = p.to(q.device)`` it runs, and
    the average stays as it was.
    """
    try:
        statement = ast.parse(code.strip()).body[0]
    except (SyntaxError, IndexError):
        return False
    if not isinstance(statement, ast.Assign) or not isinstance(statement.targets[0], ast.Name):
        return False
    name = statement.targets[0].id
    function = source.function(node)
    scope = function or source.tree
    loops = [part for part in ast.walk(scope) if isinstance(part, (ast.For, ast.AsyncFor))]
    is_loops = any(isinstance(n, ast.Name) and n.id == name for loop in loops for n in ast.walk(loop.target))
    is_argument = function is not None and name in bindings.parameters(function)
    return (is_loops or is_argument) and any(_changes(part, name) for part in ast.walk(scope))


def _changes(node: ast.AST, name: str) -> bool:
    """``p.mul_(m)``, ``p.data.copy_(q)``, ``p += q``, ``p.data = q``, ``p.grad = g``, ``p[0] = q``"""
    targets: list[ast.expr]
    match node:
        case ast.Call(func=ast.Attribute(value=what, attr=verb)) if verb.endswith("_") and not verb.endswith("__"):
            targets = [what]
        case ast.AugAssign(target=target):
            targets = [target]
        case ast.Assign(targets=all_of_them):
            targets = [target for target in all_of_them if not isinstance(target, ast.Name)]
        case _:
            return False
    for changed in targets:
        root = changed
        while isinstance(root, (ast.Attribute, ast.Subscript)) or (
            isinstance(root, ast.Call) and isinstance(root.func, ast.Attribute)
        ):
            root = root.func if isinstance(root, ast.Call) else root.value
        if isinstance(root, ast.Name) and root.id == name:
            return True
    return False


def frame_at(ctx: Context, source: Source, node: ast.AST) -> FrameType | None:
    """The live frame that runs the code around `node`, if the finding knows it."""
    finding = ctx.finding
    sites = [finding.failed, *(step.site for step in (*finding.chain, *finding.owner_chain))]
    sites += [site for site in (finding.start, finding.stray.site if finding.stray is not None else None) if site]
    around = next(iter(ctx.work.functions(source, node)), None)
    for site in sites:
        own = site.source is source and site.frame is not None
        if own and next(iter(ctx.work.functions(source, site.node)), None) is around:
            return site.frame
    return None


def offers(live: Any, name: str) -> bool:
    """Has the object an attribute of this name, or a way to make one up?"""
    spaces = [attributes(live), *class_dicts(type(live))]
    if is_of(live, type):
        spaces += class_dicts(live)
    return any(name in space for space in spaces) or any("__getattr__" in space for space in spaces[1:])


def _works(ctx: Context, site: Site, code: str) -> bool:
    from ipydevice.fixes import results

    try:
        tree = ast.parse(code.lstrip())
    except SyntaxError:
        return True  # no statement of its own: the draft checks the whole
    own = {
        n.id
        for node in ast.walk(tree)
        if isinstance(node, ast.comprehension)
        for n in ast.walk(node.target)
        if isinstance(n, ast.Name)
    }
    own |= {n for node in tree.body if hasattr(node, "body") for n in bound([node])}
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.Lambda)):
            return True  # a helper, with names of its own
        if not isinstance(node, (ast.Attribute, ast.Subscript)):
            continue
        holder = _live(ctx, site, node.value, own)
        if holder is MISSING:
            match node:
                case ast.Attribute(value=ast.Name(id=name), attr=attr) if attr in _ASKED and name not in own:
                    if results.lacks(ctx, site, node.value, attr):
                        return False
            continue
        if isinstance(node.ctx, ast.Store):
            if not _takes(holder, node):
                return False
        elif isinstance(node, ast.Attribute) and node.attr in _ASKED and not offers(holder, node.attr):
            return False
    return True


def _live(ctx: Context, site: Site, node: ast.expr, own: set[str]) -> Any:
    """What a node of the new code denotes at the place where it will stand."""
    names = {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}
    return MISSING if names & own else value_at(ctx, site, node)


def value_at(ctx: Context, site: Site, node: ast.expr) -> Any:
    """What an expression that stands nowhere yet denotes at `site`."""
    names = {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}
    found = {name: ctx.work.value(site, name) for name in names}
    return MISSING if any(live is MISSING for live in found.values()) else value(node, Scope(found, {}))


def _takes(holder: Any, target: ast.Attribute | ast.Subscript) -> bool:
    """May this attribute or item of the object be assigned?"""
    if isinstance(target, ast.Subscript):
        return not is_of(holder, tuple, str, bytes) and offers(holder, "__setitem__")
    return not is_immutable(holder) and not _is_read_only(holder, target.attr)


def is_immutable(holder: Any) -> bool:
    """A tuple, named or not, or an instance of a frozen dataclass."""
    frozen = any(getattr(space.get("__dataclass_params__"), "frozen", False) for space in class_dicts(type(holder)))
    return frozen or is_of(holder, tuple, str, int, float)


def _is_read_only(holder: Any, name: str) -> bool:
    """Is the attribute a property that cannot be set?"""
    for space in class_dicts(type(holder)):
        if name in space:
            return type(space[name]) is property and space[name].fset is None
    return name not in attributes(holder) and not placement.is_module(holder) and not offers(holder, "__dict__")
