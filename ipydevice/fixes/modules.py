"""Modules that were left behind, and things that nn.Module does not know it has."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import Any

from ipydevice import placement
from ipydevice.diagnose.evaluate import MISSING
from ipydevice.diagnose.finding import Site, Step
from ipydevice.diagnose.infer import FACTORIES, call_name
from ipydevice.fixes import bindings, classes, moves
from ipydevice.fixes.context import Context, Proposal
from ipydevice.fixes.factories import fresh
from ipydevice.fixes.names import bound, last_name, own_nodes, root
from ipydevice.fixes.workspace import outermost_loop
from ipydevice.placement.kinds import attributes

# What lists and dicts can do and nn.ModuleList and nn.ModuleDict cannot (torch 2.13).
_LIST_ONLY = frozenset(["index", "reverse", "sort", "copy", "count", "remove", "clear"])
_DICT_ONLY = frozenset(["get", "setdefault", "copy", "fromkeys"])


# -- a whole module on the wrong device -------------------------------------------------------


def module_left_behind(ctx: Context) -> Iterator[Proposal]:
    """``.to(device)`` where the module is constructed; a line above its use where that would not last."""
    above = above_the_use(ctx)
    if above is not None and _is_sent_home(ctx):
        yield above
        return
    steps = [*bindings.of_module(ctx)]
    known = _module_steps(ctx)[::-1]
    inside = [s for s in known if s.site.source.class_of(s.site.node) is not None]
    around = [*bindings.of_outer_module(ctx)]
    # A layer set in a class is the business of whoever moves the whole module.
    order = [*steps, *around, *known] if len(inside) == len(known) else [*steps, *known, *around]
    made = (p for step in order if (p := constructed(ctx, step)) is not None)
    first = next(made, None)
    if first is not None:
        yield first
    if above is not None:
        yield above


def _is_sent_home(ctx: Context) -> bool:
    """Is the module handed, after it is made, to a function of the notebook that moves it as it likes?"""
    stray = ctx.stray
    name = root(stray.site.node) if stray is not None else None
    if name is None:
        return False
    for cell in ctx.work.order:
        own = ctx.work.effects(cell)
        for node in own_nodes(own.tree.body):
            if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Name)):
                continue
            given = [a.id for a in node.args if isinstance(a, ast.Name)]
            for earlier in ctx.work.order if name in given else ():
                definition = ctx.work.effects(earlier).definitions.get(node.func.id)
                if isinstance(definition, ast.FunctionDef) and given.index(name) < len(definition.args.args):
                    parameter = definition.args.args[given.index(name)].arg
                    if _moves(definition, parameter):
                        return True
    return False


def _moves(function: ast.FunctionDef, parameter: str) -> bool:
    moves = [
        node
        for node in ast.walk(function)
        if isinstance(node, ast.Call) and last_name(node.func) in ("to", "cpu", "cuda") and root(node.func) == parameter
    ]
    return len(moves) > 1 or any(last_name(m.func) == "cpu" for m in moves)


def _module_steps(ctx: Context) -> list[Step]:
    """The steps by which the module came about, the constructor last."""
    stray = ctx.stray
    if stray is not None and not placement.is_module(stray.value) and placement.is_module(stray.owner):
        return ctx.finding.owner_chain or ctx.chain
    return ctx.chain or ctx.finding.owner_chain


def constructed(ctx: Context, step: Step) -> Proposal | None:
    """``Net()`` becomes ``Net().to(device)`` in the statement of this step."""
    site = step.site
    statement = site.source.statement(site.node)
    value: ast.AST | None = step.value
    target: ast.expr | None = None
    if isinstance(statement, (ast.Assign, ast.AnnAssign)) and step.how in ("assignment", "attribute", "item"):
        value = statement.value
        target = statement.targets[0] if isinstance(statement, ast.Assign) else statement.target
        if isinstance(value, ast.Tuple) and isinstance(target, ast.Tuple) and len(target.elts) == len(value.elts):
            value, target = _element(ctx, site, target, value)
    elif step.how == "expression" and isinstance(site.node, ast.expr):
        value = site.node
    elif step.how not in ("item", "return", "expression"):
        return None
    if target is not None and not _may_be_module(moves.target_value(ctx, site, target)):
        return None
    calls = list(_constructors(value))
    if not calls or any(last_name(call.func) in ("Parameter", "Buffer") for call in calls):
        return None
    if any(fresh(call, ctx.scope(site)) and call_name(call, ctx.scope(site)) in FACTORIES for call in calls):
        return None
    draft = ctx.draft(site.source)
    names = frozenset(bound([statement])) if statement is not None else frozenset()
    device: str | None = None
    for call in calls:
        device = ctx.device(Site(site.source, call, site.frame), avoid=names)
        if device is None:
            return None
        present = _move_in_chain(call)
        if present is not None:
            draft.replace(present.args[0], device) if present.args else draft.suffix(call, f".to({device})")
        else:
            draft.suffix(call, f".to({device})")
    name = site.source.segment(target) if target is not None else site.source.segment(calls[0])
    live = live_move(ctx)
    return Proposal(f"move {name} where it is made", [draft], live=live)


def _may_be_module(live: Any) -> bool:
    if live is MISSING or placement.is_module(live):
        return True
    parts = list(live.values()) if type(live) is dict else list(live) if type(live) in (list, tuple) else []
    return bool(parts) and all(placement.is_module(part) for part in parts)


def _element(ctx: Context, site: Site, target: ast.Tuple, value: ast.Tuple) -> tuple[ast.expr, ast.expr]:
    stray = ctx.stray
    wanted = {id(stray.value), id(stray.owner)} if stray is not None else set()
    names = {root(stray.site.node)} if stray is not None else set()
    for one, part in zip(target.elts, value.elts, strict=True):
        live = ctx.value(Site(site.source, one, site.frame))
        if live is not MISSING and id(live) in wanted:
            return part, one
    for one, part in zip(target.elts, value.elts, strict=True):
        if root(one) in names:
            return part, one
    return value, target


def _constructors(value: ast.AST | None) -> Iterator[ast.Call]:
    """The calls whose results are the value, the elements' where it is a list of them."""
    match value:
        case ast.Call():
            yield value
        case ast.ListComp() | ast.GeneratorExp():
            yield from _constructors(value.elt)
        case ast.DictComp():
            yield from _constructors(value.value)
        case ast.List() | ast.Tuple():
            for part in value.elts:
                yield from _constructors(part)
        case ast.Dict():
            for part in value.values:
                yield from _constructors(part)
        case ast.IfExp():
            yield from _constructors(value.body)
            yield from _constructors(value.orelse)
        case _:
            return


def _move_in_chain(call: ast.Call) -> ast.Call | None:
    """The ``.to(...)`` that the value ends with already."""
    if isinstance(call.func, ast.Attribute) and call.func.attr == "to" and len(call.args) == 1:
        return call
    return None


def live_move(ctx: Context) -> str | None:
    """Code that moves the live module: ``teacher.to(device)``."""
    stray = ctx.stray
    if stray is None:
        return None
    path = stray.path
    if placement.is_module(stray.owner) and not placement.is_module(stray.value):
        path = classes.owner_path(ctx)
    elif not placement.is_module(stray.value):
        return None
    device = workspace_device(ctx)
    return None if path is None or device is None else f"{path}.to({device})"


def workspace_device(ctx: Context) -> str | None:
    """The target device said in a new cell below the failed one."""
    failed = ctx.work.failed
    if failed is None:
        return None
    source = classes.cell_source(ctx, failed)
    if not source.tree.body:
        return None
    return ctx.device(Site(source, source.tree.body[0], None))


def above_the_use(ctx: Context) -> Proposal | None:
    """``model.to(device)`` above the statement that uses it, outside of loops."""
    stray = ctx.stray
    if stray is None or not isinstance(stray.site.node, ast.expr):
        return None
    site, expression = stray.site, stray.site.node
    value = ctx.value(site)
    if value is MISSING or not placement.is_module(value):
        found = _module_in_loop(ctx)
        if found is None:
            return None
        expression = found
    name = site.source.segment(expression)
    statement: ast.stmt | None = site.source.statement(expression)
    loop = outermost_loop(site.source, expression)
    base = root(expression)
    if loop is not None and base and ctx.work.available(Site(site.source, loop, site.frame), base):
        statement = loop
    if statement is None:
        return None
    device = ctx.device(Site(site.source, statement, site.frame), avoid=[base] if base else [])
    if device is None:
        return None
    draft = ctx.draft(site.source)
    draft.before(statement, f"{name}.to({device})")
    return Proposal(f"move {name} before it is used", [draft], live=None, note="moves nothing when it is there already")


def _module_in_loop(ctx: Context) -> ast.expr | None:
    """``self.shadow`` of ``for a, p in zip(self.shadow.parameters(), ...)``: the module that holds the stray."""
    stray = ctx.stray
    step = ctx.chain[0] if ctx.chain else None
    if (
        stray is None
        or step is None
        or step.how != "loop"
        or step.value is None
        or step.site.source is not stray.site.source
    ):
        return None
    for node in ast.walk(step.value):
        if isinstance(node, (ast.Name, ast.Attribute)):
            live = ctx.value(Site(step.site.source, node, step.site.frame))
            if placement.is_module(live) and any(f.value is stray.value for f in placement.walk(live)):
                return node
    return None


# -- modules in a list or dict ----------------------------------------------------------------


def plain_container(ctx: Context) -> Iterator[Proposal]:
    """``self.layers = []`` becomes ``nn.ModuleList()``, a dict ``nn.ModuleDict()``."""
    for owner, attribute, held in _containers(ctx):
        if placement.is_module(owner) and classes.all_modules(held):
            yield from _registered(ctx, owner, attribute, held)
    yield from module_left_behind(ctx)


def _containers(ctx: Context) -> Iterator[tuple[Any, str, Any]]:
    stray = ctx.stray
    if stray is None:
        return
    items = [stray.value, stray.owner]
    owners = [stray.owner, *_selves(ctx)]
    for owner in owners:
        if owner is None:
            continue
        for item in items:
            if item is not None and placement.is_module(item):
                for attribute, held in classes.containers_of(owner, item):
                    yield owner, attribute, held
        if stray.attribute:
            attribute = re.split(r"[.\[]", stray.attribute)[0]
            held = ctx_attribute(owner, attribute)
            if type(held) in (list, tuple, dict):
                yield owner, attribute, held


def ctx_attribute(owner: Any, name: str) -> Any:
    """An attribute from the instance's own dict."""
    return attributes(owner).get(name)


def _selves(ctx: Context) -> Iterator[Any]:
    """The objects whose methods are running in the frames that the finding knows."""
    sites = [ctx.finding.failed, *(s.site for s in ctx.chain)]
    if ctx.stray is not None:
        sites.insert(0, ctx.stray.site)
    for site in sites:
        if site.frame is not None and "self" in site.frame.f_locals:
            yield site.frame.f_locals["self"]


def _registered(ctx: Context, owner: Any, attribute: str, held: Any) -> Iterator[Proposal]:
    kind = "ModuleDict" if type(held) is dict else "ModuleList"
    settings = classes.settings(ctx, owner, attribute)
    path = _path_to(ctx, owner)
    device = workspace_device(ctx)
    text_keys = type(held) is not dict or all(type(k) is str and k and "." not in k for k in held)
    for setting in settings[:1]:
        site = setting.site
        name = ctx.work.torch_name(site, f"nn.{kind}")
        if name is None or not classes.after_super(setting):
            continue
        node = site.source.class_of(setting.statement)
        draft = ctx.draft(site.source)
        fits = text_keys and node is not None and not _needs_plain(node, attribute, kind)
        live = None
        if fits:
            _wrapped(draft, site, setting.value, name)
            title = f"make self.{attribute} an nn.{kind}"
            if path is not None and device is not None:
                live_name = _live_name(ctx, f"nn.{kind}")
                live = f"{path}.{attribute} = {live_name}({path}.{attribute}).to({device})"
        else:
            # The container stays what it is; a second, registered one makes the module know its items.
            listed = ctx.work.torch_name(site, "nn.ModuleList")
            values = f"self.{attribute}.values()" if kind == "ModuleDict" else f"self.{attribute}"
            if _grows_later(node, attribute):
                continue
            draft.after(setting.statement, f"self.{attribute}_modules = {listed}({values})")
            title = f"register the modules of self.{attribute}"
        yield Proposal(
            title,
            [draft],
            live=live,
            note="its parameters join model.parameters() and the checkpoint; build optimizers after it",
        )


def _wrapped(draft: Any, site: Site, value: ast.expr, name: str) -> None:
    empty = (isinstance(value, ast.List) and not value.elts) or (isinstance(value, ast.Dict) and not value.keys)
    bare = isinstance(value, ast.Call) and last_name(value.func) in ("list", "dict", "tuple") and not value.args
    if empty or (bare and not value.keywords):  # type: ignore[attr-defined]
        draft.replace(value, f"{name}()")
    else:
        draft.wrap(value, f"{name}(", ")")


def _needs_plain(node: ast.ClassDef, attribute: str, kind: str) -> bool:
    """Does the class use a method on it that the registered kind lacks?"""
    lacking = _DICT_ONLY if kind == "ModuleDict" else _LIST_ONLY
    for call in ast.walk(node):
        if isinstance(call, ast.Attribute) and call.attr in lacking and isinstance(call.value, ast.Attribute):
            if call.value.attr == attribute:
                return True
    return False


def _grows_later(node: ast.ClassDef | None, attribute: str) -> bool:
    for call in ast.walk(node) if node is not None else ():
        if isinstance(call, ast.Subscript) and isinstance(call.ctx, ast.Store) and last_name(call.value) == attribute:
            return True
        if isinstance(call, ast.Attribute) and call.attr in ("append", "extend", "insert", "update"):
            if last_name(call.value) == attribute:
                return True
    return False


def _path_to(ctx: Context, owner: Any) -> str | None:
    """How the workspace names this object: a global name, or one level below."""
    for name, live in list(ctx.finding.namespace.items()):
        if live is owner and not name.startswith("_"):
            return name
    for name, live in list(ctx.finding.namespace.items()):
        if placement.is_module(live) and not name.startswith("_"):
            for member in placement.members(live):
                if member.value is owner:
                    return f"{name}{member.path}"
    return None


def _live_name(ctx: Context, dotted: str) -> str:
    """torch's name in the workspace, or an import that gives it."""
    import sys

    torch = sys.modules.get("torch")
    for name, live in list(ctx.finding.namespace.items()):
        if torch is not None and live is torch.nn and not name.startswith("_"):
            return f"{name}.{dotted.split('.', 1)[1]}"
    for name, live in list(ctx.finding.namespace.items()):
        if torch is not None and live is torch and not name.startswith("_"):
            return f"{name}.{dotted}"
    return f"__import__('torch').{dotted}"


# -- a layer made in forward --------------------------------------------------------------------


def built_in_forward(ctx: Context) -> Iterator[Proposal]:
    """Make the layer in ``__init__`` and use it in forward; where that cannot be, move it where it is made."""
    stray = ctx.stray
    sites = [stray.site] if stray is not None else []
    sites += [step.site for step in ctx.chain]
    for site in sites:
        call = _layer_call(site)
        if call is not None:
            moved = _into_init(ctx, site, call)
            if moved is not None:
                yield moved
            device = ctx.device(Site(site.source, call, site.frame))
            if device is not None:
                draft = ctx.draft(site.source)
                draft.suffix(call, f".to({device})")
                yield Proposal(
                    "move the layer where it is made",
                    [draft],
                    note="it is new on every call, so it never learns: better made once in __init__",
                )
            return


def _layer_call(site: Site) -> ast.Call | None:
    node: ast.AST | None = site.node
    statement = site.source.statement(node) if node is not None else None
    if isinstance(node, ast.Call) and last_name(node.func)[:1].isupper():
        return node
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Call):
        return node.func
    if isinstance(statement, ast.Assign) and isinstance(statement.value, ast.Call):
        value = statement.value
        inner = value.func if isinstance(value.func, ast.Call) else value
        if last_name(inner.func)[:1].isupper():
            return inner
    return None


def _into_init(ctx: Context, site: Site, call: ast.Call) -> Proposal | None:
    source = site.source
    node = source.class_of(call)
    method = source.function(call)
    init = classes.init_of(node) if node is not None else None
    if node is None or init is None or not isinstance(method, ast.FunctionDef) or method is init:
        return None
    allowed = _ready_in_init(init)
    names = {root(n) for n in own_nodes([*call.args, *(k.value for k in call.keywords)]) if isinstance(n, ast.Name)}
    local = bound(method.body) | {a.arg for a in method.args.args}
    if (names - {"self"}) & local:
        return None
    for part in (*call.args, *(k.value for k in call.keywords)):
        for attribute in ast.walk(part):
            if (
                isinstance(attribute, ast.Attribute)
                and isinstance(attribute.value, ast.Name)
                and attribute.value.id == "self"
            ):
                if attribute.attr not in allowed:
                    return None
    taken = {n.attr for n in ast.walk(node) if isinstance(n, ast.Attribute)}
    name = _attribute_name(call, taken | {m.name for m in node.body if isinstance(m, ast.FunctionDef)})
    draft = ctx.draft(source)
    draft.after(init.body[-1], f"self.{name} = {draft.segment(call)}")
    statement = source.statement(call)
    draft.replace(call, f"self.{name}")
    if isinstance(statement, ast.Assign) and statement.value is call:
        pass  # "layer = nn.Linear(...)" becomes "layer = self.linear"
    return Proposal(
        f"make the {last_name(call.func)} once, in __init__",
        [draft],
        note="the layer now keeps its weights between calls and joins the checkpoint",
    )


def _ready_in_init(init: ast.FunctionDef) -> set[str]:
    """Attributes that `__init__` has set when it ends."""
    return {
        n.attr
        for statement in init.body
        for n in ast.walk(statement)
        if isinstance(n, ast.Attribute) and isinstance(n.ctx, ast.Store)
    }


def _attribute_name(call: ast.Call, taken: set[str]) -> str:
    kind = last_name(call.func)
    short = {"BatchNorm1d": "bn", "BatchNorm2d": "bn", "BatchNorm3d": "bn", "LayerNorm": "norm", "Linear": "fc"}
    short |= {"Conv1d": "conv", "Conv2d": "conv", "Conv3d": "conv"}
    name = short.get(kind) or re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", kind).lower()
    if name not in taken:
        return name
    number = 2
    while f"{name}{number}" in taken:
        number += 1
    return f"{name}{number}"
