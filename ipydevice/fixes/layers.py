"""A layer that is made inside forward."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from ipydevice.diagnose.finding import Site
from ipydevice.diagnose.source import Source
from ipydevice.fixes import classes
from ipydevice.fixes.context import Context, Proposal
from ipydevice.fixes.names import bound, last_name, own_nodes, receiver, root
from ipydevice.language import say


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
                    say("move the layer where it is made"),
                    [draft],
                    note=say("it is new on every call, so it never learns: better made once in __init__"),
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
    own = receiver(method)
    if own != receiver(init) or _is_kept(source, call, own):
        return None
    allowed = _ready_in_init(init)
    names = {root(n) for n in own_nodes([*call.args, *(k.value for k in call.keywords)]) if isinstance(n, ast.Name)}
    local = bound(method.body) | {a.arg for a in method.args.args}
    if (names - {own}) & local:
        return None
    for part in (*call.args, *(k.value for k in call.keywords)):
        for attribute in ast.walk(part):
            if (
                isinstance(attribute, ast.Attribute)
                and isinstance(attribute.value, ast.Name)
                and attribute.value.id == own
            ) and attribute.attr not in allowed:
                return None
    taken = {n.attr for n in ast.walk(node) if isinstance(n, ast.Attribute)}
    name = _attribute_name(call, taken | {m.name for m in node.body if isinstance(m, ast.FunctionDef)})
    draft = ctx.draft(source)
    draft.after(init.body[-1], f"{own}.{name} = {draft.segment(call)}")
    statement = source.statement(call)
    draft.replace(call, f"{own}.{name}")
    if isinstance(statement, ast.Assign) and statement.value is call:
        pass  # "layer = nn.Linear(...)" becomes "layer = self.linear"
    return Proposal(
        say("make the {layer} once, in __init__", layer=last_name(call.func)),
        [draft],
        note=say("the layer now keeps its weights between calls and joins the checkpoint"),
    )


def _is_kept(source: Source, call: ast.Call, own: str) -> bool:
    """``self.lins[rel] = nn.Linear(d, d)``: it is kept, one for each key, and not made anew on every call."""
    statement = source.statement(call)
    targets = statement.targets if isinstance(statement, ast.Assign) else []
    return any(isinstance(t, (ast.Attribute, ast.Subscript)) and root(t) == own for t in targets)


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
